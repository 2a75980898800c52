"""The commands of ``mechsmith``, one module for each few of them."""

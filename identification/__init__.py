"""Part of mechsmith."""

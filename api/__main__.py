"""`python -m mechsmith`."""

from mechsmith.cli import main

if __name__ == "__main__":
    main()

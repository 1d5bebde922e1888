"""`python -m hiddenmanifold` is the command line."""

from hiddenmanifold.cli import main

if __name__ == "__main__":
    main()

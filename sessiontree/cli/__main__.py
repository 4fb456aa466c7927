"""``python -m sessiontree.cli``: the same as the program ``sessiontree``."""

from sessiontree.cli import main

if __name__ == "__main__":
    main()

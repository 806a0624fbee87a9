"""`python -m penstock.config` prints the docs' reference."""

from penstock.config.reference import page

if __name__ == "__main__":
    print(page(), end="")

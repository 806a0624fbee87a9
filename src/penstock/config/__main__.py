"""`python -m penstock.config` prints `docs/reference.md`."""

from penstock.config.reference import page

if __name__ == "__main__":
    print(page(), end="")

from penstock import __version__

version = __version__

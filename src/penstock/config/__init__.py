"""Every key that a user can set: its names, values and default, and the kinds of model on which it has an effect.

>>> from penstock import config
>>> config.kind_of({"materialized": "incremental", "unique_key": "id"}).value
'merge'
"""

from penstock.config.check import Found, check_model, check_source, resolved
from penstock.config.key import Key
from penstock.config.kinds import ROOTS, STRATEGIES, Kind, kind_of, strategy

__all__ = [
    "ROOTS",
    "STRATEGIES",
    "Found",
    "Key",
    "Kind",
    "check_model",
    "check_source",
    "kind_of",
    "resolved",
    "strategy",
]

from __future__ import annotations

from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseEmptyQueryComments,
    BaseMacroArgsQueryComments,
    BaseMacroInvalidQueryComments,
    BaseMacroQueryComments,
    BaseNullQueryComments,
    BaseQueryComments,
)


class TestEmptyQueryComments(BaseEmptyQueryComments):
    pass


class TestMacroArgsQueryComments(BaseMacroArgsQueryComments):
    pass


class TestMacroInvalidQueryComments(BaseMacroInvalidQueryComments):
    pass


class TestMacroQueryComments(BaseMacroQueryComments):
    pass


class TestNullQueryComments(BaseNullQueryComments):
    pass


class TestQueryComments(BaseQueryComments):
    pass

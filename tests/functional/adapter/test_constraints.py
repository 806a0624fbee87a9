from __future__ import annotations

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)


class SparkTypes:
    """The same models, their properties with Spark's names of the types."""

    @pytest.fixture(scope="class")
    def project_files(self, project_files, project_root):
        for file in (project_root / "models").visit("*.yml"):
            file.write(file.read().replace("data_type: text", "data_type: string"))


class ColumnsEqual(SparkTypes):
    @pytest.fixture
    def string_type(self):
        return "string"

    @pytest.fixture
    def int_type(self):
        return "int"

    @pytest.fixture
    def data_types(self, schema_int_type, int_type, string_type):
        # what the query says, the type in the properties, the type in the error
        return [
            ["1", schema_int_type, int_type],
            ["'1'", string_type, string_type],
            ["true", "boolean", "boolean"],
            ["array('1', '2', '3')", "array<string>", "array<string>"],
            ["array(1, 2, 3)", "array<int>", "array<int>"],
            ["cast('2019-01-01' as date)", "date", "date"],
            ["cast('2019-01-01' as timestamp)", "timestamp", "timestamp"],
            ["cast('1.1' as decimal(4, 2))", "decimal(4, 2)", "decimal(4,2)"],
        ]


class TestTableConstraintsColumnsEqual(ColumnsEqual, BaseTableConstraintsColumnsEqual):
    pass


class TestViewConstraintsColumnsEqual(ColumnsEqual, BaseViewConstraintsColumnsEqual):
    pass


class TestIncrementalConstraintsColumnsEqual(ColumnsEqual, BaseIncrementalConstraintsColumnsEqual):
    pass


# Delta's own CHECKs, by properties, so that the commit that makes the table enforces them; what Delta has not
# (keys, uniqueness) is left out with a warning.
_CREATE = """
create or replace table <model_identifier>
using delta
tblproperties ({properties})
as
select id, color, date_day
from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


class TestTableConstraintsRuntimeDdlEnforcement(SparkTypes, BaseConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def expected_sql(self):
        return _CREATE.format(
            properties="""'delta.constraints.id_not_null' = '`id` is not null',
            'delta.constraints.id_ec83b4e2' = '(id > 0)', 'delta.constraints.id_a09be4a2' = 'id >= 1'"""
        )


class TestIncrementalConstraintsRuntimeDdlEnforcement(SparkTypes, BaseIncrementalConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def expected_sql(self):
        return _CREATE.format(
            properties="""'delta.constraints.id_not_null' = '`id` is not null',
            'delta.constraints.id_ec83b4e2' = '(id > 0)', 'delta.constraints.id_a09be4a2' = 'id >= 1'"""
        )


class TestModelConstraintsRuntimeEnforcement(SparkTypes, BaseModelConstraintsRuntimeEnforcement):
    @pytest.fixture(scope="class")
    def expected_sql(self):
        # The base puts its placeholder for each word with the model's name in it: those of the CHECKs too.
        return _CREATE.format(
            properties="""'delta.constraints.id_not_null' = '`id` is not null',
            <model_identifier> = '(id > 0)', <model_identifier> = 'id >= 1'"""
        )


class TestConstraintQuotedColumn(SparkTypes, BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql,
            "constraints_schema.yml": fixtures.model_quoted_column_schema_yml.replace('"from"', "`from`"),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return """
            create or replace table <model_identifier>
            using delta
            tblproperties (
                'delta.constraints.id_not_null' = '`id` is not null',
                'delta.constraints.from_not_null' = '`from` is not null',
                <model_identifier> = '(`from` = \\'blue\\')'
            )
            as
            select id, `from`, date_day
            from (select 'blue' as `from`, 1 as id, '2019-01-01' as date_day) as model_subq
        """


class NotNull(SparkTypes):
    @pytest.fixture(scope="class")
    def expected_error_messages(self):
        return ["DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "id : null"]


class TestTableConstraintsRollback(NotNull, BaseConstraintsRollback):
    pass


class TestIncrementalConstraintsRollback(NotNull, BaseIncrementalConstraintsRollback):
    pass


def _header(model: str) -> str:
    return model.replace("set session time zone", "set time zone").replace(
        "current_setting('timezone')", "current_timezone()"
    )


class TestTableContractSqlHeader(SparkTypes, BaseTableContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model_contract_sql_header.sql": _header(fixtures.my_model_contract_sql_header_sql),
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
        }


class TestIncrementalContractSqlHeader(SparkTypes, BaseIncrementalContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model_contract_sql_header.sql": _header(fixtures.my_model_incremental_contract_sql_header_sql),
            "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
        }


class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    pass

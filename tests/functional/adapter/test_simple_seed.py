from __future__ import annotations

import re
from pathlib import Path

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import copy_file, run_dbt


class TestBasicSeedTests(BaseBasicSeedTests):
    def test_simple_seed_full_refresh_flag(self, project):
        """A seed is replaced, never dropped: what reads it stays, where PostgreSQL drops it in a cascade."""
        self._build_relations_for_test(project)
        self._check_relation_end_state(run_result=run_dbt(["seed", "--full-refresh"]), project=project, exists=True)


class TestSeedConfigFullRefreshOn(BaseSeedConfigFullRefreshOn):
    def test_simple_seed_full_refresh_config(self, project):
        """A seed is replaced, never dropped: what reads it stays, where PostgreSQL drops it in a cascade."""
        self._build_relations_for_test(project)
        self._check_relation_end_state(run_result=run_dbt(["seed"]), project=project, exists=True)


class TestSeedConfigFullRefreshOff(BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(BaseSeedCustomSchema):
    pass


class TestSeedParsing(BaseSeedParsing):
    pass


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    @pytest.fixture(scope="class")
    def seeds(self, tmp_path_factory):
        """Without the name with dots: Spark's names are letters, digits and underscores."""
        big_seed = self._make_big_seed(tmp_path_factory.mktemp("seeds") / "data")
        return {"big_seed.csv": big_seed.read_text(), "seed_unicode.csv": seeds.seed__unicode_csv}

    def test_simple_seed(self, project):
        assert len(run_dbt(["seed"])) == 2


class TestSeedWithEmptyDelimiter(BaseSeedWithEmptyDelimiter):
    pass


class TestSeedWithUniqueDelimiter(BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(BaseSeedWithWrongDelimiter):
    pass


class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    pass


class TestSimpleSeedWithBOM(BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        project.run_sql(seeds.seeds__expected_sql)
        copy_file(
            Path(seeds.__file__).parent, "seed_bom.csv", project.project_root / Path("seeds") / "seed_bom.csv", ""
        )


class TestEmptySeed(BaseTestEmptySeed):
    pass


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    @pytest.fixture(scope="class")
    def models(self):
        spark = {"text": "string", "integer": "bigint", "timestamp without time zone": "timestamp"}
        return {
            "schema.yml": re.sub(
                r"(?<=type: )(text|integer|timestamp without time zone)$",
                lambda found: spark[found.group()],
                fixtures.properties__schema_yml,
                flags=re.MULTILINE,
            )
        }

    @staticmethod
    def seed_enabled_types():
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types():
        return {"seed_id_str": "string", "looks_like_a_bool": "string", "looks_like_a_date": "string"}

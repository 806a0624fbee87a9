from dbt.adapters.base import AdapterPlugin

from dbt.adapters.penstock.credentials import PenstockCredentials
from dbt.adapters.penstock.impl import PenstockAdapter
from dbt.include import penstock

Plugin = AdapterPlugin(
    adapter=PenstockAdapter,  # type: ignore[arg-type]
    credentials=PenstockCredentials,
    include_path=penstock.PACKAGE_PATH,
    # Its macros come along, so that packages with `spark__` macros work unchanged.
    dependencies=["spark"],
)

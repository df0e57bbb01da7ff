import pytest
from golden.result_schemas import FILES, schema_file, schema_text


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_those_of_the_types(name: str) -> None:
    assert schema_file(name).read_text() == schema_text(name), "run `make schemas`"

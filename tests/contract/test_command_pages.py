"""docs/commands.md holds every command and option as it is."""

from golden.command_pages import PAGE, page_text


def test_the_page_of_commands_is_as_the_commands_are():
    assert PAGE.read_text("utf-8") == page_text(), "run `make commands`"

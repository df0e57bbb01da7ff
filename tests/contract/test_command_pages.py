"""docs/commands.md holds every command and option as it is."""

from golden.command_pages import PAGE, page_text

from harness.cli.main import COMMANDS, harness


def test_the_page_of_commands_is_as_the_commands_are():
    assert PAGE.read_text("utf-8") == page_text(), "run `make commands`"


def test_the_page_has_every_command_and_every_option():
    text = PAGE.read_text("utf-8")
    for name in COMMANDS:
        assert f"\n## harness {name}\n" in text
        part = text.partition(f"\n## harness {name}\n")[2].partition("\n## harness ")[0]
        for param in harness.get_command(None, name).params:
            if param.param_type_name == "option" and not param.hidden:
                assert any(spelt in part for spelt in param.opts), (name, param.opts)

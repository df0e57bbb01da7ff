from weight import ROOT, bounds, room_of, weights


def test_no_room_is_heavier_than_it_may_be():
    most = bounds()
    found = {name: weight.lines for name, weight in weights().items()}
    assert found.keys() == most.keys(), "each room and plugin has its figure"
    heavier = {name: f"{found[name]} lines, at most {most[name]}" for name in most}
    assert not {name: said for name, said in heavier.items() if found[name] > most[name]}


def test_a_room_is_a_folder_and_a_plugin_its_package():
    assert room_of(ROOT / "harness" / "api.py") == "harness"
    assert room_of(ROOT / "harness" / "cli" / "templates" / "x.tmpl") == "harness/cli"
    assert room_of(ROOT / "plugins" / "harness_judges" / "plugin.py") == "plugins/harness_judges"
    assert room_of(ROOT / "tests" / "cli" / "test_run.py") == "tests"

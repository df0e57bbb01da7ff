"""What a model has without saying so."""

from harness import Identity, Model, Reply


class Parrot(Model):
    identity = Identity(kind="parrot", name="parrot")

    async def ask(self, request):
        return Reply(text=request)


def test_a_line_is_shown_to_the_user_of_the_run_alone(tmp_path):
    shown = []
    model, other = Parrot(), Parrot()
    model.show("before a run")
    model.attach_log(tmp_path, shown.append)
    model.show("in a run")
    other.show("elsewhere")
    assert shown == ["in a run"]
    assert (model.log_folder, other.log_folder) == (tmp_path, None)


def test_models_are_told_apart_by_which_they_are_and_not_by_whose_answers_they_give():
    one, other = Parrot(), Parrot()
    assert one.identity == other.identity
    assert {one: 1, other: 2} == {other: 2, one: 1}
    assert len({one, other}) == 2

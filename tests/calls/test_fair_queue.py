"""Who has an answer lets requests go first."""

import asyncio

from harness.calls.client import AT_A_TIME, Turns


async def test_a_few_go_on_in_a_round_of_the_loop_first_come_first_served():
    turns, went_on, seen = Turns(), [], []

    async def one(number: int) -> None:
        await turns.wait()
        went_on.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(2 * AT_A_TIME + 1)]
    while len(went_on) < len(tasks):
        await asyncio.sleep(0)
        if not seen or seen[-1] != len(went_on):
            seen.append(len(went_on))
    assert went_on == list(range(2 * AT_A_TIME + 1))
    assert seen == [0, AT_A_TIME, 2 * AT_A_TIME, 2 * AT_A_TIME + 1]
    await asyncio.gather(*tasks)


async def test_one_who_gave_up_keeps_nobody_waiting():
    turns = Turns()
    gone, stays = (asyncio.create_task(turns.wait()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait_for(stays, 60)
    await asyncio.wait_for(turns.wait(), 60)
    assert gone.cancelled()

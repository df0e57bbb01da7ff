from faults import plant


def test_each_fault_has_one_place_and_all_its_tests():
    sources, tests = plant.code(), plant.tests_by_name()
    for fault in plant.read():
        assert len(fault.places(sources)) == 1, fault.about
        assert not [name for name in fault.tests if name not in tests], fault.about

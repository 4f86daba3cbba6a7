"""For all Python tests: what waits long begins first, so that the others fill the time beside it."""


def pytest_collection_modifyitems(items):
    def seconds(item):
        marker = item.get_closest_marker("long")
        return marker.args[0] if marker else 0
    items.sort(key=seconds, reverse=True)  # stable: the others stay in order

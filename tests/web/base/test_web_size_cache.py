from nutbeam.web.base.mappings import SizeCache


def test_a_cache_is_bounded_and_keeps_the_last_used_values():
    cache, keys = SizeCache(100, len), range(5)
    for key in keys[:4]:
        cache.put(key, "x" * 25)
    assert cache.get(0) is not None
    cache.put(4, "x" * 25)
    assert [cache.get(key) is not None for key in keys] == [True, False, True, True, True]
    assert cache.size == 100
    cache.put(2, "x" * 80)  # in place of a smaller one
    assert [cache.get(key) is not None for key in keys] == [False, False, True, False, False]
    assert cache.size == 80
    cache.put(1, "x" * 200)
    assert cache.size == 0

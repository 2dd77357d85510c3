"""News of a store: who committed last, and what another process did."""

from __future__ import annotations

from lace.store.news import StoreNews


def test_a_cursor_that_no_commit_of_ours_left_is_news_and_our_own_is_none() -> None:
    news, heard = StoreNews(), list[int]()
    news.listen(lambda: heard.append(news.count))
    news.tell(7)
    news.notice(7)
    assert heard == [1]
    news.notice(8)  # another process
    assert heard == [1, 2]
    assert news.at is None
    news.tell(9)
    news.notice(9)
    assert heard == [1, 2, 3]

"""Pages about laces, archives, captures and a running node, for a browser on this machine: `lace inspect`.

Rule: pages go to this machine only. A page is data first; its HTML and its JSON say the same. Content of records is
shown as text and never runs.

The words of this floor:

    inspected   everything that one inspector has opened
    page        a title, data, and a body that shows the data in HTML
    place       a label and its address: navigation and breadcrumbs
    markup      text that is already HTML; only `html` creates it
    widget      a small part of pages: a hash that can be copied, a time, a table, a pager
    answer      a program over a lace with its facts, cached while neither changes
    walk        the gates on one record's way to a viewer
    guard       who may send requests: token, session cookie, Host, Origin
    export      one HTML file without a server

What never happens here: nothing is written unless `--write` was given, no page reads a whole lace, and no text from a
record reaches a page unescaped.
"""

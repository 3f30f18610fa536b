"""Hostile texts and what is posted instead. ``·`` stands for the character that breaks a word without being seen."""

from __future__ import annotations

TOKEN = "ghp_" + "a1B2" * 9
KNOWN = "correct-horse-battery"

HOSTILE = {
    # mentions
    "a person would be notified": ("Ask @octocat.", "Ask @·octocat."),
    "a whole team would be notified": ("cc @org/team-x", "cc @·org/team-x"),
    "a mention at the very start": ("@octocat", "@·octocat"),
    "a mention in brackets": ("(@a), [@b], “@c”", "(@·a), [@·b], “@·c”"),
    "a mention in bold": ("**@octocat** _@hubot_", "**@·octocat** _@·hubot_"),
    "a mention behind emphasis that ends in an underscore": ("_x_@octocat", "_x_@·octocat"),
    "a mention behind code": ("`x`@octocat", "`x`@·octocat"),
    "a mention in a heading": ("# For @octocat", "# For @·octocat"),
    "a mention in a list in a quote": ("> - @octocat", "> - @·octocat"),
    "a mention in a table": ("| a |\n|---|\n| @b |", "| a |\n|---|\n| @·b |"),
    "a mention behind an escaped pipe": ("| a |\n|---|\n| x \\| @b |", "| a |\n|---|\n| x \\| @·b |"),
    "a mention in a footnote": ("x[^1]\n\n[^1]: @b\n\n    @c", "x[^1]\n\n[^1]: @·b\n\n    @·c"),
    "a backslash does not stop a mention": ("\\@octocat", "\\@·octocat"),
    "an entity is a mention when rendered": ("&#64;octocat &commat;a &#x40;b", "@·octocat @·a @·b"),
    "a name that begins with an entity": ("@&#111;ctocat", "@·&#111;ctocat"),
    "a comment holds the halves of a mention apart": ("@<!-- -->octocat", "@·octocat"),
    "a zero width space holds them apart": ("@\u200boctocat", "@·octocat"),
    "a closing tag that vanishes holds them apart": ("@</b>octocat", "@·</b>octocat"),
    "a mention in an HTML block": ("<div>\n@octocat `@b`\n</div>", "<div>\n@·octocat `@·b`\n</div>"),
    "a mention in a summary": (
        "<details><summary>@a</summary></details>",
        "<details><summary>@·a</summary></details>",
    ),
    "a mention in the text of a link": ("[@a](https://x.test)", "[@·a](https://x.test)"),
    "a mention behind an address that is not a link": ("https://a_b/@octocat", "https://a_b/@·octocat"),
    "a mention in an address in an open bracket": ("[ https://x.test/@octocat", "[ https://x.test/@·octocat"),
    "a bot is called by its name": ("@dependabot rebase", "@·dependabot rebase"),
    "a backtick in an address opens no code": (
        "https://x.test/`a @b `c`",
        "https://x.test/`a @·b `c`",
    ),
    "a link swallows a backtick": ("[a](x`y) @b `z`", "[a](x`y) @·b `z`"),
    "a reference swallows a backtick": ("[a][b`c] @d `e]\n\n[b`c]: /x", "[a][b`c] @·d `e]\n\n\\[b`c]: /x"),
    "code over the rows of a text that only looks like a table": (
        "a | `b\n--|--|--\n` @c `d`",
        "a | `b\n--|--|--\n` @·c `d`",
    ),
    "strong text in strong text vanishes": ("**(@**name** b)**", "**(@·**name** b)**"),
    "an undefined footnote shows its source": ("[^a `@octocat`]", "[^a `@·octocat`]"),
    "a long entity": ("&#x0000040;octocat", "@·octocat"),
    "an entity without a semicolon in an HTML block": (
        "<div>\n&#64octocat &copy@octocat\n</div>",
        "<div>\n@·octocat &copy@·octocat\n</div>",
    ),
    # closing keywords
    "an issue would be closed": ("Fixes #12", "F·ixes #12"),
    "all nine words close": (
        "close #1 closes #1 closed #1 fix #1 fixes #1 fixed #1 resolve #1 resolves #1 resolved #1",
        "c·lose #1 c·loses #1 c·losed #1 f·ix #1 f·ixes #1 f·ixed #1 r·esolve #1 r·esolves #1 r·esolved #1",
    ),
    "a colon may stand between": ("CLOSES: #10", "C·LOSES: #10"),
    "an issue of another repository": ("resolves octo-org/octo-repo#100", "r·esolves octo-org/octo-repo#100"),
    "the old way to write a number": ("fixes gh-7", "f·ixes gh-7"),
    "the address of an issue": ("Closes https://github.com/o/r/issues/7", "C·loses https://github.com/o/r/issues/7"),
    "an address in angle brackets": (
        "Closes <https://github.com/o/r/issues/7>",
        "C·loses <https://github.com/o/r/issues/7>",
    ),
    "a link to an issue": (
        "Closes [it](https://github.com/o/r/issues/7)",
        "C·loses [it](https://github.com/o/r/issues/7)",
    ),
    "a keyword in bold": ("**Fixes** #12", "**F·ixes** #12"),
    "a reference in bold": ("Fixes **#12**", "F·ixes **#12**"),
    "a keyword on the line before": ("Fixes\n#12", "F·ixes\n#12"),
    "a keyword in the heading before": ("## Fixes\n\n#12", "## F·ixes\n\n#12"),
    "a keyword behind a hyphen": ("auto-fix #3", "auto-f·ix #3"),
    "a keyword with an entity": ("&#70;ixes #12", "F·ixes #12"),
    "an escaped number": ("Fixes \\#12 &#35;13", "F·ixes \\#12 &#35;13"),
    "a hidden character within a keyword": ("Fi\u200dxes #12", "F·ixes #12"),
    "a keyword in strong text in strong text": ("**a **Fix**es #1**", "**a **F·ix**es #1**"),
    "a keyword far from its number": ("Fixes" + " " * 40 + "#12", "F·ixes" + " " * 40 + "#12"),
    "a keyword before a link by reference": (
        "Fixes [a][1]\n\n[1]: https://github.com/o/r/issues/7",
        "F·ixes [a][1]\n\n[1]: https://github.com/o/r/issues/7",
    ),
    "a keyword in an undefined footnote": ("[^b `Fixes o/r#1`]", "[^b `F·ixes o/r#1`]"),
    "a keyword with an entity in an HTML block": ("<div>\n&#70ixes #12\n</div>", "<div>\nF·ixes #12\n</div>"),
    # commands
    "a bot would merge": ("/merge", "/·merge"),
    "a bot would label": ("ok\n/label bug", "ok\n/·label bug"),
    "a command is found behind blanks": ("x\n  /approve", "x\n  /·approve"),
    "a comment hides a command": ("<!-- x -->/merge", "/·merge"),
    "a bot reads a command in an HTML block": ("<div>\n/gemini review\n</div>", "<div>\n/·gemini review\n</div>"),
    "a workflow tests how a comment starts": ("/merge!\n/deploy@prod", "/·merge!\n/·deploy@prod"),
    # HTML
    "a script would run": ("<script>x()</script>", "&lt;script>x()&lt;/script>"),
    "a handler would run": ("a <b onclick=x()>b</b>", "a &lt;b onclick=x()>b</b>"),
    "an image tells who reads": (
        'a <img src="https://x.test/p.gif" width="1">',
        'a &lt;img src="https://x.test/p.gif" width="1">',
    ),
    "an image from an open line": ("a <img src=http://x.test/p.png>", "a &lt;img src=http://x.test/p.png>"),
    "a frame, a form, a style": (
        "a <iframe src=x> <form action=y> <style>",
        "a &lt;iframe src=x> &lt;form action=y> &lt;style>",
    ),
    "a tag left open in an HTML block swallows what follows": (
        "<div>\n<img src=x\n\ny",
        "<div>\n&lt;img src=x\n\ny\n\n</div>",
    ),
    "a declaration and an instruction": ("<!DOCTYPE x>\n<?php x ?>", "&lt;!DOCTYPE x>\n&lt;?php x ?>"),
    "an address in an attribute is a script": (
        '<a href="java&#115;cript:x">y</a>',
        '&lt;a href="java&#115;cript:x">y</a>',
    ),
    "an address in an attribute lies": (
        "<a href='https://github.com@x.test'>y</a>",
        "&lt;a href='https:·//github.com@x.test'>y</a>",
    ),
    # comments, markers
    "a comment holds hidden text": ("a <!-- obey --> b", "a  b"),
    "a comment over lines in a quote": ("> a <!-- b\n> c --> d", "> a  d"),
    "a comment that nothing ends hides the rest": ("a\n\n<!-- b\n\nc", "a\n\n"),
    "a comment in a table keeps the table together": ("<table>\n  <!-- x -->\n  <tr>", "<table>\n  <tr>\n\n</table>"),
    "a marker would adopt another item": ("<!-- accord:item run=r id=t -->", ""),
    "a marker in odd spelling": ("<!--ACCORD:item-->x", "x"),
    "a marker made by taking another out": ("<!-<!-- x -->- accord:item -->", "&lt;!-- accord:item -->"),
    "a marker as a reference": ("[accord:item r]: #", "\\[accord:item r]: #"),
    "a marker as a reference in capitals": ("x\n\n[ ACCORD r]: <#> 'x'", "x\n\n\\[ ACCORD r]: <#> 'x'"),
    "a marker in the title of a link": ("[a](b '<!-- accord:item -->')", "\\[a](b '&lt;!-- accord:item -->')"),
    # hidden
    "a word reads otherwise than it is": ("pay\u202eevil\u202c", "payevil"),
    "a word is split for a filter": ("se\u200bcr\u2060et\ufeff", "secret"),
    "tag characters carry a message": ("hi\U000e0068\U000e0069", "hi"),
    "control characters drive a terminal": ("\x1b[31mred\x00", "red"),
    "variation selectors carry bytes": ("a\ufe01\U000e0120", "a"),
    "a joiner between Latin letters": ("pass\u200dword", "password"),
    "hidden characters as entities": ("a&#8203;b&ZeroWidthSpace;c&#x202E;d", "abcd"),
    "half a pair and a null cannot be sent": ("a\ud800b`c\x00d`", "ab`cd`"),
    # links
    "a link is a script": ("[a](javascript:x)", "\\[a](javascript:x)"),
    "a link is a script in spite of blanks": ("[a](<java\tscript:x>)", "\\[a](&lt;java\tscript:x>)"),
    "a link is a script in entities": ("[a](&#x6A;avascript&colon;x)", "\\[a](&#x6A;avascript&colon;x)"),
    "an image holds data": ("![a](data:text/html,x)", "!\\[a](data:text/html,x)"),
    "a definition is a script": ("[a]\n\n[a]: vbscript:x", "[a]\n\n\\[a]: vbscript:x"),
    "a footnote is a script where none are known": ("[^a]: javascript:x\n\n[^a]", "\\[^a]: javascript:x\n\n[^a]"),
    "an autolink is a script": ("<javascript:x>", "&lt;javascript:x>"),
    "an address lies about its host": ("https://github.com@x.test/a", "https:·//github.com@x.test/a"),
    "an address without scheme lies": ("www.github.com@x.test", "www·.github.com@x.test"),
    "a link lies about its host": ("[a](//github.com@x.test)", "\\[a](//github.com@x.test)"),
    "an autolink lies": ("<https://github.com@x.test>", "&lt;https:·//github.com@x.test>"),
    "backslashes pass for slashes": ("[a](https:\\\\github.com@x.test)", "\\[a](https:\\\\github.com@x.test)"),
    "an address with a blank of another script": (
        "https://github.com\u00a0login@x.test",
        "https:·//github.com\u00a0login@x.test",
    ),
    "a link shows another host": ("[https://github.com/x](https://x.test)", "\\[https://github.com/x](https://x.test)"),
    "a link shows another bare host": ("[**github.com**/x](https://x.test)", "\\[**github.com**/x](https://x.test)"),
    "a link by reference shows another host": (
        "[https://github.com/x][1]\n\n[1]: https://x.test",
        "\\[https://github.com/x][1]\n\n[1]: https://x.test",
    ),
    "a tag shows another host": (
        '<a href="https://x.test">https://github.com/x</a>',
        '&lt;a href="https://x.test">https://github.com/x</a>',
    ),
    "a host with a letter of another script": ("[a](https://g\u0456thub.com)", "\\[a](https:·//g\u0456thub.com)"),
    "a hidden direction as a long entity": ("a&#x000202E;b", "ab"),
    # secrets
    "a token is posted": (f"x {TOKEN} y", "x [redacted: github-token] y"),
    "a token in code": (f"`{TOKEN}`", "`[redacted: github-token]`"),
    "a token in a fence": (f"```\n{TOKEN}\n```", "```\n[redacted: github-token]\n```"),
    "a token in an address": (f"[a](https://x.test/?{TOKEN})", "[a](https://x.test/?[redacted: github-token])"),
    "a known value, split by a hidden character": (
        "correct-\u200bhorse-battery",
        "[redacted: secret of the environment]",
    ),
    "a known value, split by emphasis": ("correct-**horse**-battery", "[redacted: secret of the environment]"),
    "a known value, split by a hidden character in code": (
        "`correct-\u200bhorse-battery`",
        "`[redacted: secret of the environment]`",
    ),
    "a token with a backslash": (f"ghp\\_{TOKEN[4:]}", "[redacted: github-token]"),
    # fences
    "a fence left open would show our marker": ("```\n@a fixes #1", "```\n@a fixes #1\n```"),
    # tags
    "a box left open would fold away what follows": (
        "<details><summary>x</summary>\n\ny\n",
        "<details><summary>x</summary>\n\ny\n\n</details>",
    ),
    "a link left open would take in what follows": (
        'See <a href="https://x.test">here',
        'See <a href="https://x.test">here\n\n</a>',
    ),
    "preformatted text goes on over blank lines": ("<pre>\n\n# x", "<pre>\n\n# x\n\n</pre>"),
    "tags that are closed crosswise stay open": ("a <b><i>b</b> c", "a <b><i>b</b> c\n\n</i>"),
}

"""Hostile texts and what is posted instead. ``·`` stands for the character that breaks a word without being seen."""

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
    "a mention in a summary": ("<details><summary>@a</summary></details>", "<details><summary>@·a</summary></details>"),
    "a mention in the text of a link": ("[@a](https://x.test)", "[@·a](https://x.test)"),
    "a mention behind an address that is not a link": ("https://a_b/@octocat", "https://a_b/@·octocat"),
    "a mention in an address in an open bracket": ("[ https://x.test/@octocat", "[ https://x.test/@·octocat"),
    "a bot is called by its name": ("@dependabot rebase", "@·dependabot rebase"),
    "a backtick in an address opens no code": ("https://x.test/`a @b `c`", "https://x.test/`a @·b `c`"),
    "a link swallows a backtick": ("[a](x`y) @b `z`", "[a](x`y) @·b `z`"),
    "a reference swallows a backtick": ("[a][b`c] @d `e]\n\n[b`c]: /x", "[a][b`c] @·d `e]\n\n\\[b`c]: /x"),
    "code over the rows of a text that only looks like a table": (
        "a | `b\n--|--|--\n` @c `d`",
        "a | `b\n--|--|--\n` @·c `d`",
    ),
    "strong text in strong text vanishes": ("**(@**name** b)**", "**(@·**name** b)**"),
    "an undefined footnote shows its source": ("[^a `@octocat`] @hubot", "\\[^a `@octocat`] @·hubot"),
    "a long entity": ("&#x0000040;octocat", "@·octocat"),
    "an entity without a semicolon in an HTML block": (
        "<div>\n&#64octocat &copy@octocat\n</div>",
        "<div>\n@·octocat &copy@·octocat\n</div>",
    ),
    "an indented line below a definition": ("[1]: /x\n    @octocat", "[1]: /x\n    @·octocat"),
    "a table below a definition": ("[x]: @octocat\na | b\n-|-", "[x]: @·octocat\na | b\n-|-"),
    "a footnote that shows its entities": ("[^&#x6a;@octocat]", "\\[^&#x6a;@octocat]"),
    "mail that no one can have": ("\u0645@a_.m", "\u0645@·a_.m"),
    "an entity ends an address": ("https://x.test/&commat;</a>octocat", "https://x.test/@·</a>octocat"),
    "an entity behind a backslash ends an address": ("http://t/\\&commat;</a>o", "http://t/\\@·</a>o"),
    "a name in emphasis": ("@*octocat*", "@·*octocat*"),
    "a quote that looks like the head of a table": (">|`\n-|-\n|`@c`", ">|`\n-|-\n|`@·c`"),
    "a list that looks like code below a paragraph": (" 11. \n     * r\n    + @c", " 11. \n     * r\n    + @·c"),
    "an item of a task list that swallows its first characters": (
        "- a\n\n  1` [ ] @b `c`",
        "- a\n\n  1` [ ] @·b `c`",
    ),
    "a pipe in the paragraph above a table": ("`a\\\n\\|`@b\nc|d\n-|-", "`a\\\n\\|`@·b\nc|d\n-|-"),
    "a mention in an address behind an escaped bracket": ("[\\](http://m/@o", "[\\](http://m/@·o"),
    "a mention that looks like mail": (
        "jos\xe9@octocat.- \xe9@octocat..x \xe9@o.http://a",
        "jos\xe9@·octocat.- \xe9@·octocat..x \xe9@·o.http://a",
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
    "a control character as an entity before a keyword": ("a&#2;fix #1 &#x1F;fix #1", "afix #1 f·ix #1"),
    "a keyword behind something like a footnote in an HTML block": (
        "<div>[^1]fix #1\n\n[^1]: x",
        "<div>[^1]f·ix #1\n\n[^1]: x\n\n</div>",
    ),
    "a keyword in an address with something like a footnote": (
        "http://s[^1]fix #1\n[^1]: x",
        "http://s[^1]f·ix #1\n[^1]: x",
    ),
    "a keyword in an undefined footnote": ("[^b `Fixes o/r#1`]", "\\[^b `Fixes o/r#1`]"),
    "a keyword with an entity in an HTML block": ("<div>\n&#70ixes #12\n</div>", "<div>\nF·ixes #12\n</div>"),
    "a tag within a reference": ("fixes o<sub>/</sub>r#2", "f·ixes o<sub>/</sub>r#2"),
    "a keyword and its number in two cells": ("| Fix | GH-3 |\n|---|---|", "| F·ix | GH-3 |\n|---|---|"),
    "a keyword before a list": ("Fix\n- #2", "F·ix\n- #2"),
    "a keyword before a box": (
        "Close\n<details>https://github.com/o/r/issues/4</details>",
        "C·lose\n<details>https://github.com/o/r/issues/4</details>",
    ),
    "a keyword in the label of a link in a footnote": ("[^fixes ]()GH-3", "\\[^fixes ]()GH-3"),
    "a keyword before the footnotes": ("[^1]\n\n[^1]: #7\n\nClose", "[^1]\n\n[^1]: #7\n\nC·lose"),
    "a keyword in a link behind an address that swallows a backtick": (
        "](http://t` [fixes ]()#1`)",
        "](http://t` [f·ixes ]()#1`)",
    ),
    "an image between keyword and number": ("fix ![a](/b) #1", "f·ix ![a](/b) #1"),
    "an image of an issue between keyword and number": ("fix![](issues/4) #1", "f·ix![](issues/4) #1"),
    "a keyword before a hard line break": ("fix\\\n#1", "f·ix\\\n#1"),
    "a footnote as the name of an owner": ("[^1]:Close\n[^1]/r#2", "[^1]:C·lose\n[^1]/r#2"),
    "a footnote with brackets as the name of an owner": ("[^1]:Close\n[^1 \n[] ]/r#2", "[^1]:Close\n\\[^1 \n[] ]/r#2"),
    "a keyword above a rule that only one reader takes for a table": ("Fix\n-|\n#1", "F·ix\n-|\n#1"),
    "a keyword before an address in brackets": (
        "Close [[x]](https://github.com/o/r/issues/7)",
        "C·lose [[x]](https://github.com/o/r/issues/7)",
    ),
    "a keyword before a link with code": (
        "Close [[]`3`](https://x.test/o/r/issues/7)",
        "C·lose [[]`3`](https://x.test/o/r/issues/7)",
    ),
    "a keyword before a list that one reader takes for a table": ("Fix\n- #2|b\n-|-", "F·ix\n- #2|b\n-|-"),
    "a keyword before an address with a tag inside": (
        "Close ht<b>tp</b>s://x.test/o/r/issues/4",
        "C·lose ht<b>tp</b>s://x.test/o/r/issues/4",
    ),
    "a keyword before a link that only one reader sees": (
        "https://x.test/`\n[fixes ](/y)#1`",
        "https://x.test/`\n[f·ixes ](/y)#1`",
    ),
    "a keyword before an address that swallows a backtick": (
        "Close https://x`/o/r/issues/7`",
        "C·lose https://x`/o/r/issues/7`",
    ),
    "a keyword with emphasis inside": ("F*i*xes #1", "F·*i*xes #1"),
    "a keyword with an empty link inside": ("Fi[]()xes\n#2", "F·i[]()xes\n#2"),
    "a keyword with a link inside": ("Fi[x](/y)es #1", "F·i[x](/y)es #1"),
    "a keyword behind a footnote in what is an address": (
        "http://s[^1]fix\n\n#1\n-\t[^1]: x",
        "http://s[^1]f·ix\n\n#1\n-\t[^1]: x",
    ),
    "a keyword before a footnote with a blank": ("[^1]: Close\n[^1 ]/r#2", "[^1]: Close\n\\[^1 ]/r#2"),
    "a keyword behind a footnote that does not exist": (
        "[^1]: [^a]Close\n[^1]/r#2",
        "[^1]: [^a]C·lose\n[^1]/r#2",
    ),
    "the address of an issue that begins in angle brackets": (
        "Close <http://m/-/r/>issues/7 <http://m/o/r/is>sues/7",
        "C·lose <http://m/-/r/>issues/7 <http://m/o/r/is>sues/7",
    ),
    "the address of an issue with underscores for names": (
        "Close http://m/_/~/issues/7",
        "C·lose http://m/_/~/issues/7",
    ),
    "a keyword behind an entity in an address, and a number as an entity": (
        "http://x&#x6a;fixes &#35;1",
        "http://x&#x6a;f·ixes &#35;1",
    ),
    "a keyword behind an entity in an address, and a tag": (
        "http://x&#x6a;fixes</b> #1",
        "http://x&#x6a;f·ixes</b> #1",
    ),
    "a keyword behind an entity in an address, before a list": (
        "http://m\xa0&#x6a;fix\n- #2",
        "http://m\xa0&#x6a;f·ix\n- #2",
    ),
    "an image between keyword and number in an undefined footnote": (
        "[^1]:\n[^fix![a]() #1",
        "[^1]:\n\\[^f·ix![a]() #1",
    ),
    "a footnote with brackets in brackets as the name of an owner": (
        "[^1]:Close\n[^1 [[]]\n[] ]/r#2",
        "[^1]:Close\n\\[^1 [[]]\n[] ]/r#2",
    ),
    "a user for the repository of an issue": ("Fixes octocat#1", "F·ixes octocat#1"),
    "an address of an issue without a scheme": (
        "Fixes www.github.com/o/r/issues/7",
        "F·ixes www.github.com/o/r/issues/7",
    ),
    "a link to an issue without a host": ("Fixes [a](/o/r/issues/7)", "F·ixes [a](/o/r/issues/7)"),
    "a link to an issue with a long text": (
        f"Fixes [{'a' * 300}](https://github.com/o/r/issues/7)",
        f"F·ixes [{'a' * 300}](https://github.com/o/r/issues/7)",
    ),
    "a link to an issue as a tag": (
        'Fixes <a href="https://github.com/o/r/issues/7">a</a>',
        'F·ixes <a href="https://github.com/o/r/issues/7">a</a>',
    ),
    "a link to an issue as a tag in a block": (
        '<p>Fixes <a href="/o/r/issues/7">a</a></p>',
        '<p>F·ixes <a href="/o/r/issues/7">a</a></p>',
    ),
    "an issue would be marked as a duplicate": ("Duplicate of #12", "D·uplicate of #12"),
    # commands
    "a bot would merge": ("/merge", "/·merge"),
    "a bot would label": ("ok\n/label bug", "ok\n/·label bug"),
    "a command is found behind blanks": ("x\n  /approve", "x\n  /·approve"),
    "a command is found behind blanks of other scripts": ("\xa0/merge\n\u3000/approve", "\xa0/·merge\n\u3000/·approve"),
    "a bot reads a command in the title of a definition": (
        '[x]: /u\n"a\n/merge"\n\n[x]',
        '[x]: /u\n"a\n/·merge"\n\n[x]',
    ),
    "a bot reads a command in the title of a link": ('[a](/u "t\n/merge")', '[a](/u "t\n/·merge")'),
    "a bot reads a command in the name of a reference": (
        "[a][x\n/merge]\n\n[x\n/merge]: /u",
        "[a][x\n/·merge]\n\n[x\n/·merge]: /u",
    ),
    "a bot reads a command in an attribute": (
        '<a href="/u" title="\n/merge">x</a>',
        '<a href="/u" title="\n/·merge">x</a>',
    ),
    "a bot reads a command behind another line end": ("x\r/merge", "x\r/·merge"),
    "a comment hides a command": ("<!-- x -->/merge", "/·merge"),
    "a bot reads a command in an HTML block": ("<div>\n/gemini review\n</div>", "<div>\n/·gemini review\n</div>"),
    "a bot would deploy": (
        ".deploy main to production\n  .noop\n!deploy\n.lock --info\n\t!ok-to-test.",
        ".·deploy main to production\n  .·noop\n!·deploy\n.·lock --info\n\t!·ok-to-test.",
    ),
    "a workflow tests how a comment starts": ("/merge!\n/deploy@prod", "/·merge!\n/·deploy@prod"),
    # HTML
    "a script would run": ("<script>x()</script>", "&lt;script>x()&lt;/script>"),
    "a handler would run": ("a <b onclick=x()>b</b>", "a &lt;b onclick=x()>b</b>"),
    "an image tells who reads": (
        'a <img src="https://x.test/p.gif" width="1">',
        'a <a href="https://x.test/p.gif">image</a>',
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
    "a tag behind a backslash in an address": ("https://x.test/\\<i onerror=y>", "https://x.test/\\&lt;i onerror=y>"),
    "code after backticks that close nothing": ("`` `a` `<i onclick>`", "`` `a` `&lt;i onclick>`"),
    "a table that only one reader sees": ("`\n-|-\n`@c`||\n-|-", "`\n-|-\n`@·c`||\n-|-"),
    "a table whose head looks like a rule": ("a|`\n-|\n-|\n`@c`", "a|`\n-|\n-|\n`@·c`"),
    "a table whose head begins an HTML block": ("<div>|\n-|\n`@c`", "<div>|\n-|\n`@·c`\n\n</div>"),
    "a cell beyond the head of a table": ("a|\n-|\n|\n-|@b", "a|\n-|\n|\n-|@·b"),
    "a tag below a definition, behind another blank": ("[1]: /x\n\t\xa0<i onerror>", "[1]: /x\n\t\xa0&lt;i onerror>"),
    "a tag as a row of a table begins an HTML block": ("a | b\n-|-\n</pre>\n| <?x", "a | b\n-|-\n</pre>\n| &lt;?x"),
    "a tag as a row of what only one reader takes for a table": (
        "x\n-|\n<b>\n~~~@a\n~~~",
        "x\n-|\n<b>\n~~~@·a\n~~~\n\n</b>",
    ),
    "a tag on a line that a quote goes on with": ("> x\n<b>\n~~~@a\n~~~", "> x\n<b>\n~~~@·a\n~~~\n\n</b>"),
    "a tag on a line that a footnote goes on with": ("[^1]: x\n<b>\n~~~@a\n~~~", "[^1]: x\n<b>\n~~~@·a\n~~~\n\n</b>"),
    "a tag and a blank that does not count as one": (
        "<b>\xa0\n![](https://x.test)\n</b>",
        "<b>\xa0\n[image](https://x.test)\n</b>",
    ),
    "a tag below a definition": ("[1]: /x\n\t<i onerror>", "[1]: /x\n\t&lt;i onerror>"),
    "an image in a quote behind something like a fence": (
        ">\n    >```\n><img src='//x.test/a.png'>",
        '>\n    >```\n><a href="//x.test/a.png">image</a>',
    ),
    "a line that goes on with a definition begins no HTML block": (
        "[1]: /x\n<b>\n![](https://x.test)\n</b>",
        "[1]: /x\n<b>\n[image](https://x.test)\n</b>",
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
    "an image holds data": ("![a](data:text/html,x)", "\\[a](data:text/html,x)"),
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
    "a link shows a host that is not above its own": ("[b.io](https://ab.io)", "\\[b.io](https://ab.io)"),
    "a link shows a page of the host above its own": ("[b.io/x](//a.b.io)", "\\[b.io/x](//a.b.io)"),
    "a link shows a host below its own": ("[a.b.io](https://b.io)", "\\[a.b.io](https://b.io)"),
    "mentions in names of references": (
        "[@a] [x][@a]\n\n[@a]: https://x.test",
        "[@·a] [x][@·a]\n\n[@·a]: https://x.test",
    ),
    "attributes that GitHub does not keep": (
        "<a name='x'></a><img src='/a.png' width=1 style='a'> <td class=\"a\"\n id=b align=left>",
        "<a></a><img src='/a.png'> <td align=left>",
    ),
    "a picture's source as a line begins an HTML block for one reader only": (
        "x\n<source>![a](//x.test)",
        "x\n&lt;source>[a](//x.test)",
    ),
    "an image in what is an address for one reader only": ("www.![a](//x.test)", "www.!\\[a](//x.test)"),
    "a definition whose address is markup for other readers": (
        "- [ ] [1]:@b\n\n- [1]:[http://`c`](http://t)\n\n[x]:<g>\n\n[y]:@a(",
        "- [ ] \\[1]:@·b\n\n- \\[1]:\\[http://`c`](http://t)\n\n\\[x]:&lt;g>\n\n\\[y]:@·a(",
    ),
    "a mention in an address that is a link for one reader only": ("http://m/@o", "http://m/@·o"),
    "an image in the host that the text of a tag shows": (
        '<a href="//t.test">http![](x)://h.test</a>',
        '&lt;a href="//t.test">http![](x)://h.test</a>',
    ),
    "an image whose text shows another host": (
        '![crates.io](https://x.test/a) <img src="//x.test" alt="crates.io">',
        '[image](https://x.test/a) <a href="//x.test">image</a>',
    ),
    "a source of a picture that tells who reads": (
        '<picture><source srcset="https://x.test/a" media="x"><img src="/a"></picture>',
        '<picture><source><img src="/a"></picture>',
    ),
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
    "a link of several rows shows another host": (
        'a | b\n-|-\n<a href="https://x.test">\nhttps://github.com',
        'a | b\n-|-\n&lt;a href="https://x.test">\nhttps://github.com',
    ),
    "a link of several blocks shows another host": (
        '<div><a href="https://x.test">\n\n[https://github.com\n\n</a></div>',
        '<div>&lt;a href="https://x.test">\n\n[https://github.com\n\n</a></div>',
    ),
    "an image with a caret is a link": (
        "![^http://github.com](http://x.test)",
        "!\\[^http://github.com](http://x.test)",
    ),
    "a link shows another host behind an arrow": (
        "[<-http://github.com>](http://x.test)",
        "\\[<-http://github.com>](http://x.test)",
    ),
    "a definition with an open bracket": ("[x]: javascript:(\n[x]", "\\[x]: javascript:(\n[x]"),
    "a link that shows another host in something like a tag": (
        '[<i"https://github.com>](https://x.test)',
        '\\[<i"https://github.com>](https://x.test)',
    ),
    "a link that only one reader sees": (
        "https://x.test/` [a](javascript:x)`",
        "https://x.test/` \\[a](javascript:x)`",
    ),
    "a link with brackets shows another host": (
        "//[https://github.com[]](https://x.test)",
        "//\\[https://github.com[]](https://x.test)",
    ),
    "a link that only one reader sees lies": (
        "https://x.test/` [https://github.com](https://x.test)`",
        "https://x.test/` \\[https://github.com](https://x.test)`",
    ),
    "a backslash does not end a host": ("https://github.com\\@x.test", "https:·//github.com\\@·x.test"),
    "a bracket does not end an address": (
        "https://x.test/[ ](https://github.com)@x.test",
        "https://x.test/[ ](https:·//github.com)@·x.test",
    ),
    "a hidden direction as a long entity": ("a&#x000202E;b", "ab"),
    "a link without a host shows one": ("[http://m](http://&#4)", "\\[http://m](http://&#4)"),
    "a backslash before a host": ("[a](http://\\x.test)", "\\[a](http://\\x.test)"),
    "a link behind an address that swallows a backtick": (
        "http://x` [http://g[]](http://t)`",
        "http://x` \\[http://g[]](http://t)`",
    ),
    "a link in brackets that were closed": (
        "[a [b] https://github.com](https://x.test)",
        "\\[a [b] https://github.com\\](https://x.test)",
    ),
    "a host is shown by a tag in code": (
        '[`<a href="http://t">`](http://7)',
        '\\[`<a href="http://t">`](http://7)',
    ),
    "a host in code in a label that is an image": (
        '[![`<a href="http://t">`](/i.png)](http://7)',
        '\\[![`<a href="http://t">`](/i.png)](http://7)',
    ),
    "a tag in code seems to end a link that shows another host": (
        '<a href="//x.test">x `</a>` `http://t.test`</a>',
        '&lt;a href="//x.test">x `</a>` `http://t.test`</a>',
    ),
    "an indented line below a link in an HTML block shows another host": (
        '<div><a href="http://t">\n\n\t</a(http://a',
        '<div>&lt;a href="http://t">\n\n\t</a(http://a\n\n</div>',
    ),
    "a keyword follows an entity in an address": (
        "http://x&#x6a;fixes #1",
        "http://x&#x6a;f·ixes #1",
    ),
    "an escaped tag in a label shows another host": (
        '`g`[\\<a href="http://t">](http://7)',
        '`g`\\[\\<a href="http://t">](http://7)',
    ),
    "a blank that is not ASCII is before the host": (
        "[http://x.test](http://\xa0x.test)",
        "\\[http://x.test](http://\xa0x.test)",
    ),
    "what only looks like the end of a link hides the rest of its text": (
        'x <a href="http://t.test">[</a(http://a.test</a>',
        'x &lt;a href="http://t.test">[&lt;/a(http://a.test</a>',
    ),
    "an escaped end of a link hides the rest of its text": (
        'x <a href="http://t.test">\\</a>http://a.test</a>',
        'x &lt;a href="http://t.test">\\&lt;/a>http://a.test</a>',
    ),
    "a bracket in code in the text of a link that shows another host": (
        "[http://`c[`](http://t)",
        "\\[http://`c[`](http://t)",
    ),
    "a link to an issue whose text closes another one": ("[Close](issues/1) #2", "[C·lose](issues/1) #2"),
    "a link whose host is a blank": (
        "[http://x.test](http://\xa0/x.test/)",
        "\\[http://x.test](http://\xa0/x.test/)",
    ),
    "a tag links to another host than one in code": (
        '<a href="//x.test">`<a href="http://t.test">`</a>',
        '&lt;a href="//x.test">`<a href="http://t.test">`</a>',
    ),
    "a definition is a script with a backslash": ("[a]\n\n[a]: javascript\\:x", "[a]\n\n\\[a]: javascript\\:x"),
    "a definition lies with an entity and a backslash": (
        "[a]\n\n[a]: https&colon;/\\/github.com\\@x.test",
        "[a]\n\n\\[a]: https&colon;/\\/github.com\\@·x.test",
    ),
    "what is an entity only at first sight ends a host": (
        "[a](https://github.com&amp;sol;@x.test)",
        "\\[a](https:·//github.com&amp;sol;@·x.test)",
    ),
    "a label that is not an entity shows another host": (
        "[https://github.com&#46x.test](https://github.com.x.test)",
        "\\[https://github.com&#46x.test](https://github.com.x.test)",
    ),
    "a link behind empty brackets shows another host": (
        "[[]http://g(](http://t)",
        "\\[[]http://g(\\](http://t)",
    ),
    "two addresses lie in one word": ("(www.a&#64;(www.b@c", "(www·.a&#64;(www·.b@c"),
    "a control character as an entity in a host": (
        "[`http://m.t`](http://m&#xE;.t/)",
        "\\[`http://m.t`](http://m.t/)",
    ),
    "a hidden character as an entity in a host": (
        "[`http://m.t`](http://m&#8203;.t/)",
        "\\[`http://m.t`](http://m.t/)",
    ),
    "a link shows a host with a letter of another script": (
        "[g\u0456thub.com](https://x.test)",
        "\\[g\u0456thub.com](https://x.test)",
    ),
    "a host in code with blanks": ("[http://`` c ``](http://t)", "\\[http://`` c ``](http://t)"),
    # images
    "an image from a host with what is not an entity": (
        "![i](https://user-imag&#70ixes.githubusercontent.com/1/i.png)",
        "[i](https://user-imag&#70ixes.githubusercontent.com/1/i.png)",
    ),
    "an image whose host is an entity of an entity": (
        "![i](https://raw.githubusercontent.com&amp;sol;x)",
        "[i](https://raw.githubusercontent.com&amp;sol;x)",
    ),
    "an image from a host with a backslash": ("![](http:github.com\\x)", "[image](http:github.com\\x)"),
    "an image tells its host who reads": ("![a](https://x.test/a.png)", "[a](https://x.test/a.png)"),
    "an image without a text": ("![](https://x.test/?leak)", "[image](https://x.test/?leak)"),
    "an image by reference": ("![a][b] ![b]\n\n[b]: //x.test/b.png", "[a][b] [b]\n\n[b]: //x.test/b.png"),
    "an image in a link": ("[![a](https://x.test/a.png)](https://y.test)", "[a](https://y.test)"),
    "an image behind exclamation marks": ("Yes!![a](https://x.test)", "Yes!\\![a](https://x.test)"),
    "an image in an image": ("![a ![b](https://x.test)](/c)", "![a [b](https://x.test)](/c)"),
    "an image where readers differ": (
        "https://x.test/` ![a](https://x.test/a.png) `",
        "https://x.test/` [a](https://x.test/a.png) `",
    ),
    "an image by reference that only one reader sees": (
        "![b](\n\n[b]: //x.test/b.png",
        "[b](\n\n[b]: //x.test/b.png",
    ),
    "an image from a host that only begins well": (
        "![a](https://github.com.x.test/a)",
        "[a](https://github.com.x.test/a)",
    ),
    "an image as a tag": (
        'a <img src="https://x.test/a.png" alt="b" width="300">',
        'a <a href="https://x.test/a.png">b</a>',
    ),
    "an image as a tag in a block": (
        "<p align='center'><img src='https://x.test/a.png'></p>",
        "<p align='center'><a href=\"https://x.test/a.png\">image</a></p>",
    ),
    "an image as a tag in a link": (
        '<a href="https://y.test"><img src="https://x.test/a.png" alt="build"></a>',
        '<a href="https://y.test">build</a>',
    ),
    "an image as a tag in a Markdown link": (
        '[<img src="https://x.test/a.png">](https://y.test)',
        "[image](https://y.test)",
    ),
    "images of another kind": (
        '<picture><source srcset="https://x.test/a 2x"><img srcset="/a 2x"></picture> <video src="/a">',
        '<picture><source><img></picture> &lt;video src="/a">',
    ),
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

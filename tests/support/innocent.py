"""Innocent texts: what people and agents write all day, in many languages. Not a byte of them may change."""

INNOCENT = {
    "nothing": "",
    "blank lines": "\n\n  \n",
    "English": "The cache is never emptied; a restart hides it. See section 3, and ask the owners of `src/cache.py`.",
    "Persian with joiners": "می‌خواهم این خطا را درست کنم؛ کتاب‌ها آماده‌اند. سال ۱۴۰۰ ه‍ است.",
    "Arabic": "السلام عليكم، هذا الاختبار يفشل دائمًا (انظر الملف).",
    "Hebrew with points and a mark": "שָׁלוֹם עולם \u200f(C++)\u200f זה עובד",
    "Hindi with half forms": "क्षेत्र, क्‍षेत्र और हिन्दी में त्रुटि ठीक करें।",
    "Sinhala and Malayalam": "ශ්‍රී ලංකා, മലയാളം ന്‍റെ",
    "Bengali and Tamil": "পরীক্ষা ব্যর্থ হয়েছে। தமிழ் மொழி க்ஷ",
    "Thai": "ข้อผิดพลาดนี้เกิดขึ้นเมื่อไฟล์ว่างเปล่า",
    "Khmer with break marks": "ភាសា\u200bខ្មែរ",
    "Burmese": "မြန်မာဘာသာ စမ်းသပ်မှု",
    "Japanese with a variant": "辻\U000e0100さん、修正を確認してください。",
    "Chinese and Korean": "修复了缓存错误。 오류를 고쳤습니다.",
    "Greek, Cyrillic, Vietnamese": "Διόρθωσε το σφάλμα. Исправь ошибку. Sửa lỗi này.",
    "letters put together by hand": "e\u0301 is not é, and that stays so: Å Å",
    "families and professions": "👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 🏴‍☠️ ❤️‍🔥 🧑‍🚀",
    "flags": "🇩🇪 🇮🇷 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "keycaps and signs": "1️⃣ #️⃣ ✔️ ☎︎ ©️ ™️ ➡️ ⚠️",
    "a decorator in code": "Use `@pytest.fixture` or `@dataclass(frozen=True)`, never a bare class.",
    "at signs in fences": "```css\n@media (min-width: 1px) { a { color: red } }\n```\n\n```py\n@app.get('/merge')\n```",
    "closing words in code": "The message `fixes #12` is in a fence:\n\n~~~\nCloses #12\n/merge\n<!-- x -->\n~~~",
    "indented code": "Run:\n\n    git log --author=@me\n    echo '<script>'\n\nand look.",
    "code in a list in a quote": "> 1. First:\n>\n>    ```sh\n>    npm i @types/node\n>    ```\n> 2. Then.",
    "a suggestion": "Better:\n\n```suggestion\n    @property\n    def x(self) -> int:  # fixes #1\n```\n",
    "a review": (
        "**What:** `load()` in `src/io.py:12` reads past the end when `n > len(buf)`.\n\n"
        "**Why:** `buf[n]` with `n == len(buf)` raises `IndexError`; see `tests/test_io.py::test_end`.\n\n"
        "**Fix:** check `0 <= n < len(buf)` first:\n\n```python\nif not 0 <= n < len(buf):\n    return None\n```\n"
    ),
    "a table": "| File | Lines | Note |\n|:-----|------:|------|\n| `a.py` | 12 | a \\| b |\n| `b.py` | 3 | `x \\| y` |",
    "a path in a table": "| Route | Does |\n|---|---|\n| /health | says ok |",
    "tasks": "- [ ] write\n- [x] read\n  - [ ] again\n",
    "a footnote": "As said[^1].\n\n[^1]: Elsewhere, with `code`.\n\n    And more of it.",
    "nested lists": "1. a\n   - b\n     * c\n       1. d\n\n2. e\n",
    "mail": "Write to jane.doe+x@example.com, <joe@example.org> or josé@example.com.",
    "versions with at signs": "Pinned react@18.2.0 and actions/checkout@v4, at 3 @ 5 dollars.",
    "references": "Follows #12, octo/repo#13 and GH-14; see https://github.com/o/r/issues/15.",
    "words that are not keywords here": "This fixes the bug in #12. We closed it. Resolve conflicts, prefixes and fixtures.",
    "paths at the start of a line": "/usr/bin/env is used.\n/etc/hosts too.\n- /merge is a route\n.github/x and\n.a.yml\n...",
    "links": '[a](https://x.test/a?b=c#d "t") <https://x.test> [b][c] ![i](https://user-images.githubusercontent.com/1/i.png)\n\n[c]: ./docs/a.md "T"',
    "a tag in code in a link": '[`<a href="https://x.test">`](https://x.test/a?b=1&amp;c=2) and [`<a href>`](https://y.test)',
    "a link to a line of a file": "[here](src/app.py:12), [there](app.py:3) and [top](#top)",
    "addresses with at signs in their paths": "https://medium.com/@octocat/post and https://x.test/a@b/c",
    "plain HTML": (
        "<details open>\n<summary>Log <b>x</b></summary>\n\n```\nx\n```\n\n</details>\n\nH<sub>2</sub>O<br>"
        '<kbd>Ctrl</kbd> <a href="https://x.test">x</a> <img src="https://github.com/o/r/raw/main/i.png" alt="i" width="300">'
    ),
    "a table in HTML": '<table>\n<tr><td align="center" colspan="2">a</td></tr>\n</table>',
    "comparisons": "if a < b and c > d then x <= y; 1 << 2; a<b",
    "entities": "&lt;b&gt; &amp; &copy; &nbsp; &#169; &#x2713;",
    "mathematics": "$a_b = \\sqrt{c}$ and $$\\sum_{i=1}^n i$$ 𝛼 ≤ ∑",
    "a picture of a graph": "```mermaid\ngraph LR\n  a[@x] --> b\n```",
    "an alert": "> [!NOTE]\n> Look here.",
    "names of references with code": (
        "See [`load`], [`a`][], [it][`b::c`] and [the ``x`` file].\n\n[`load`]: ./load.md\n[`a`]: /a 'A'\n"
        "[`b::c`]: https://x.test/b\n[the ``x`` file]: ../x\n"
    ),
    "a host that is below the one that is shown": "[readthedocs.io](https://a.readthedocs.io/x) and [h.io](//www.a.b.h.io)",
    "an anchor of a heading with an emoji": "[a](#\ufe0f-warning)",
    "emphasis": "*a* **b** ***c*** _d_ __e__ ~~f~~ snake_case_name 2*3*4",
    "headings and rules": "# A #\n\nB\n===\n\n---\n\n***\n",
    "Windows line ends": "a\r\n\r\n```\r\nb\r\n```\r\n",
    "escapes": "\\* \\# \\[x\\] \\`y\\` C:\\temp\\new",
    "an owner in a scope": "- src/a.py (owned by #temp-3)\n- src/b.py (owned by #12)",
    "a placeholder for a secret": "The token [redacted: github-token] was there.",
    "what accord has made harmless": "@\u2060octocat f\u2060ixes #1\n/\u2060merge https:\u2060//a@b.test",
}

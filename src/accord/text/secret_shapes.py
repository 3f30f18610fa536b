"""Shapes of secrets: tokens of known issuers, and values behind names that say so.

Only unmistakable shapes are listed, because a false hit destroys text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_MIXED = r"(?=[a-z_.~-]{0,60}[A-Z0-9])"
"""A token is not made of small letters only; names of variables and packages are."""

_TOKENS = {
    rf"{_MIXED}[A-Za-z0-9_.=~-]{{20,}}": """
        glpat- glptt- glsoat- glrt- glcbt- gldt- glft- glffct- glimt- glagent- gloas- glwt- GR1348941 dckr_pat_
        dckr_oat_ hvs. hvb. hvr. GOCSPX- tskey-auth- tskey-api- tskey-client- sq0atp- sb_secret_ glsa_ tvly- pcsk_
        dbtc_ dbtu_ NRII- pypi-AgE""",
    rf"{_MIXED}[A-Za-z0-9_.=~-]{{35,}}": """
        pscale_tkn_ pscale_pw_ pscale_oauth_ duffel_live_ duffel_test_ figd_ CFPAT- fo1_ ory_at_ ory_pat_ tgp_v1_
        nvapi- fio-u- tfp_ tk-us- AQVN sha256~ sq0csp- 1//0 sk.eyJ hcaik_ hcbik_ HRKU-AA""",
    r"[A-Za-z0-9]{28,}": """
        npm_ hf_ api_org_ gsk_ pplx- xai- lin_api_ ntn_ csk- jina_ llx- esecret_ vcp_ vca_ vci_ vcr_ vck_ nfp_ nfc_
        nfo_ nfu_ rnd_ napi_ cfut_ cfat_ pnu_ pnb_ aio_ rdme_ p8e- CLOJARS_ phx_""",
    r"[A-Fa-f0-9]{32,}(?:[_-][A-Za-z0-9]{1,40})?": """
        dop_v1_ doo_v1_ dor_v1_ dapi shpat_ shpca_ shppa_ shpss_ lsv2_pt_ lsv2_sk_ shippo_live_ shippo_test_ rubygems_
        pul- sbp_ bkua_ sqp_ squ_ sqa_ sntryu_ sntryi_ e2b_ crsr_ lin_oauth_ slk_ sgp_ sgp_local_ xkeysib- xsmtpsib-
        FLWSECK- FLWSECK_TEST- SK s-s4t2ud- s-s4t2af- _gitlab_session=""",
    r"[A-Za-z0-9+/_=-]{32,}": "bedrock-api-key- fm1a_ fm1r_ fm2_ sntrys_ ops_eyJ ATATT3 ATCTT3 eyJrIjoi whsec_",
    r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}": "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
    r"[A-Za-z0-9+/]{100,}={0,2}": "ABSK",
    r"[A-Za-z0-9]{14}(?:[A-Za-z0-9]{2,10})?(?![A-Za-z0-9])": "rzp_live_ rzp_test_ sm_aat_ sm_pat_ sm_sat_",
    r"[A-Za-z0-9]{20,}": "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_",
    r"[A-Za-z0-9]{20}(?![A-Za-z0-9])": "LTAI",
    r"[A-Za-z0-9]{32}(?![A-Za-z0-9])": "cio AKID ATBB",
    r"(?![a-f0-9]{32})[A-Za-z0-9]{32}(?![A-Za-z0-9])": "ico-",
    r"[a-z0-9]{43}(?![A-Za-z0-9])": "oy2",
    r"[A-Za-z0-9]{43}(?![A-Za-z0-9])": "secret_",
    r"(?<![_-]r8_)[A-Za-z0-9]{37}(?![A-Za-z0-9])": "r8_",
    r"(?<![_-]glc_)[A-Za-z0-9+/]{32,}={0,2}": "glc_",
    r"[A-Za-z0-9]{54}(?![A-Za-z0-9])": "EZAK EZTK",
    r"[A-Za-z0-9]{59}(?:[A-Za-z0-9]{10})?(?![A-Za-z0-9+/=])": "cmVmd AKCp",
    r"[A-Z0-9]{26,27}(?![A-Za-z0-9])": "API- NRAK-",
    r"[a-f0-9]{19}(?![A-Za-z0-9])": "NRJS-",
    r"[A-Za-z0-9]{38}(?![A-Za-z0-9])": "4b1d",
    r"[A-Za-z0-9_-]{1,400}={0,2}\.[A-Za-z0-9_-]{86}": "t1.",
    r"[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}": "sc_ ext_ scauth_ authress_",
    r"[a-f0-9]{16}_[a-f0-9]{40}": "sgp_",
    r"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9])": "re_",
    r"[A-Za-z0-9]{14}\.[a-f0-9]{64}": "pat",
    r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}": "pat. sat.",
    r"[A-Za-z0-9]{22}_[a-f0-9]{40}": "CCIPAT_ CCIPRJ_",
    r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}": "SG.",
    r"[A-Z0-9]{24}\.[A-Z0-9]{64}": "dt0c01. dt0s01. dt0s16.",
    r"[a-f0-9]{24}-(?:[a-f0-9]{146}|[a-f0-9]{34}(?![a-f0-9]))": "PMAK- v1.0-",
    r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}": """
        pat-na1- pat-na2- pat-eu1- RGAPI- access-sandbox- access-development- access-production-""",
    r"[a-z0-9]{16}\$[a-f0-9]{32}": "access_token$production$ access_token$sandbox$",
    r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}": "A3-",
    r"(?![A-Za-z0-9_-]{0,60}AAA)[A-Za-z0-9_-]{59}(?![A-Za-z0-9_-])": "EAAAE EAAAF EAAAl",
    r"(?<![+/]EAA[BCGM])(?![A-Za-z0-9]{0,100}AAA)[A-Za-z0-9]{100,}": "EAAB EAAC EAAG EAAM",
    r"[A-Z0-9]{50,70}": "AGE-SECRET-KEY-1",
}
"""How tokens of services go on after how they begin."""

LONG_WORD = re.compile(r"(?<![\w.=~+/$-])(?=[a-z_.=~+/$-]*[A-Z0-9])[\w.=~+/$-]{21}", re.ASCII)
"""A text without such a word has no token of a service; looking for one costs less than their patterns."""

_WORD = "(?<![A-Za-z0-9])"
_START = re.compile(r"\(\?<!\[[^]]*\]\)")
_ESCAPE = r"(?:\\(?:[abfnrtv0]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[0-3][0-7]{2})|%[0-9A-Fa-f]{2})"
"""A character as strings of programs and addresses write it, with a letter or a digit at its end."""

_UNMISTAKABLE = re.compile(r"(?=.{5})([A-Za-z][A-Za-z0-9]{2,9}[_.-](?:.*[_.-])?)(.*)")


def _any_of(texts: Iterable[tuple[str, str]]) -> str:
    """Return one pattern for beginnings and rests, sorted by first character, which takes a third of the time."""
    by_first: dict[str, list[str]] = {}
    for beginning, rest in texts:
        by_first.setdefault(re.escape(beginning[0]), []).append(re.escape(beginning[1:]) + rest)
    groups = (f"{first}(?:{'|'.join(found)})" for first, found in by_first.items())
    return f"(?:{'|'.join(groups)})"


_SERVICE_TOKENS = [(beginning, rest) for rest, every in _TOKENS.items() for beginning in every.split()]
BEGINNINGS = _any_of((beginning, "") for beginning, _ in _SERVICE_TOKENS) + r"[\w.=~+/$-]{14}"
"""A text without one of them has no token of a service, whose patterns take long to compile."""


def _glued_tokens() -> str:
    """Return one pattern for those of ``_TOKENS`` whose beginning is unmistakable also in the middle of a word."""
    by_last: dict[str, list[str]] = {}
    for rest, beginnings in _TOKENS.items():
        for head, tail in (found.groups() for found in map(_UNMISTAKABLE.fullmatch, beginnings.split()) if found):
            by_last.setdefault(head[-2:], []).append(f"(?<={re.escape(head)}){re.escape(tail)}{rest}")
    groups = (f"(?<={re.escape(last)})(?:{'|'.join(found)})" for last, found in by_last.items())
    return f"[_.-](?=[A-Za-z0-9_.=~-]{{20}})(?:{'|'.join(groups)})"


_IS = r"(?:\\{0,8}[\"'])?[ \t]{0,4}(?:=>?|[:>]|(?:%|\\u00)3[ADad]|&#(?:58|61);)[ \t]{0,4}(?:\\{0,8}[\"'])?"
"""Between a name and its value, also in addresses, and in JSON that is a text of JSON."""

_PATTERNS = [
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
     (r"g(?:h[pousr]_[A-Za-z0-9]{36,255}|hs_[0-9]{1,20}_eyJ[A-Za-z0-9._-]{20,}"
      r"|ithub_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})")),
    ("github-token", "ghs_", _WORD + r"ghs_[A-Za-z0-9._-]{36,}"),
    ("anthropic-key", "sk-ant-", _WORD + r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("anthropic-key", "k-ant-", r"sk-ant-[a-z]{3,5}[0-9]{2}-[A-Za-z0-9_-]{20,}"),
    ("openai-key", "sk-", rf"{_WORD}sk-{_MIXED}(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{{32,}}"),
    ("google-key", "aiza", r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("google-key", "aq.", _WORD + r"AQ\.[A-Za-z0-9_-]{40,}"),
    ("google-token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
    ("slack-token", "xox", r"xox(?:(?:[abceoprs]|e\.xox[bp])-[A-Za-z0-9-]{10,}|d-[A-Za-z0-9%_-]{10,})"),
    ("slack-token", "xapp-", _WORD + r"xapp-[A-Za-z0-9-]{10,}"),
    ("webhook", "hooks.slack discord webhook.office",
     (r"https://(?:hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"
      r"|(?:canary\.|ptb\.)?discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[A-Za-z0-9_-]{20,}"
      r"|[a-z0-9-]{1,60}\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{36,})")),
    ("service-token", "", _WORD + _any_of(_SERVICE_TOKENS)),
    ("service-token", "", _glued_tokens()),
    ("service-token", "azdo jqqj9 q~ .atlasv1. _mmk :aa",
     _WORD + r"(?:[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])|[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{27,29}"
     r"|[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~.-])|[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"
     r"|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-]))"),
    ("service-token", "+ast acdb apim +aba +amc azfu azse +acr",
     (r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/]{76}(?:APIM|ACDb|\+A(?:Ba|MC|St))|[A-Za-z0-9_-]{44}AzFu"
      r"|[A-Za-z0-9+/]{42}(?:AzSe|\+ACR))[A-Za-z0-9+/_-]{5,6}[AQgw]?={0,2}(?![A-Za-z0-9+/=])")),
    ("password", "://", r"(?<=://)[^\s:/?#@\"'<>\[\]{}$]{0,100}:[^\s:/?#\"'<>\[\]{}$]{3,200}(?=@[A-Za-z0-9.-])"),
    ("password", "accountkey sharedaccesskey sig x-amz- x-goog-",
     (rf"(?i:(?:AccountKey|SharedAccessKey){_IS})([A-Za-z0-9+/]{{40,120}}={{0,2}})"
      r"|(?i:(?<![a-z])sig(?:=|%3D))([A-Za-z0-9+/%]{40,200}(?:%3[Dd]|=))"
      rf"|(?i:x-(?:amz|goog)-(?:signature|security-token){_IS})([A-Za-z0-9+/=%]{{40,4000}})")),
    ("password", "accesskey access_key sessiontoken session_token",
     (rf"(?i:secret_?access_?key{_IS})([A-Za-z0-9+/]{{40}})(?<!EXAMPLEKEY)(?![A-Za-z0-9+/=])"
      rf"|(?i:session_?token{_IS})([A-Za-z0-9+/]{{100,4000}}={{0,2}})")),
    ("password", "access_token refresh_token client_secret auth",
     (r"(?i:\"(?:access_token|refresh_token|client_secret|auth)\\{0,8}\"[ \t]{0,4}:[ \t]{0,4}\\{0,8}\")"
      r"((?=(?:[^\s\"0-9=]{0,80}[0-9=]){2})[A-Za-z0-9_.~+/=-]{16,4000})(?=\\{0,8}\")"
      r"|(?i:_auth(?:Token)?=)([A-Za-z0-9_.~+/=-]{16,400})")),
    ("password", "password= pwd=",
     (r"(?i:(?:jdbc:|\b(?:server|data source|host|user id|uid|database|initial catalog)=)[^\s\"']{0,200}?"
      r"[;?&](?:password|pwd)=)((?=[^\s;&\"']{0,80}[0-9!#@^*])(?![<\[{*$%])[^\s;&\"'\\$%{]{4,200})")),
    ("password", "curl",
     (r"\bcurl\b[^\n|;&]{0,200}? (?:-[a-zA-Z]{0,8}u|--(?:proxy-)?user)[ =]?[\"']?"
      r"((?![$<\[{])[^\s:\"'$/]{0,100}:(?![$<\[{*]|x{3})[^\s\"'$]{4,200})")),
    ("password", "machine",
     (r"\bmachine[ \t]{1,8}\S{1,100}\.\S{1,100}(?:[ \t\n]|\\n){1,8}login[ \t]{1,8}\S{1,200}(?:[ \t\n]|\\n){1,8}"
      r"password[ \t]{1,8}((?![$<\[{])[^\s\"\\]{6,400})")),
    ("cookie", "cookie",
     (r"(?i:\bcookie[\"']?:[ \t]{0,4}[\"']?(?:[\w.-]{1,60}=[^\s;\"']{0,200};[ \t]{0,4}){0,20}?"
      r"[\w.-]{0,60}(?:sess(?:ion)?(?:[_-]?id)?|sid|auth|token)=)((?![$<\[{])[^\s;\"'\\]{16,4000})")),
    ("authorization", "authorization x-api-key x-goog-api-key x-vault-token private-token job-token",
     (rf"(?i:authorization{_IS}(?:basic|bearer|token|bot|ssws)[ \t]{{1,4}})"
      r"((?=[A-Za-z+/_.~-]{0,200}[0-9=]|[A-Za-z]{0,200}[a-z][A-Z])[A-Za-z0-9+/_.~=:-]{12,8000})"
      rf"|(?i:x-(?:goog-)?api-key|x-vault-token|(?:private|job)-token){_IS}"
      r"((?=[A-Za-z._-]{0,80}[0-9])(?:s\.)?[A-Za-z0-9_-]{16,400})(?![A-Za-z0-9_.(\[-])")),
    ("aws-key", "akia asia abia acca a3t",
     _WORD + r"(?![ACGT]{20}\b)(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?<!EXAMPLE)(?![A-Za-z0-9])"),
    ("json-web-token", "eyj", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("json-web-token", ".eyj", r"eyJ[A-Za-z0-9_-]{10,400}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
]  # fmt: skip
"""Kinds of secrets, words in small letters of which a text with one has at least one, and patterns.

Keys that end with EXAMPLE are those of AWS's documentation.
"""


SHAPES = [
    (
        kind,
        tuple(words.encode().split()),
        (pattern, f"{_ESCAPE}({pattern[at.end() :]})") if (at := _START.match(pattern)) else (pattern,),
    )
    for kind, words, pattern in _PATTERNS
]
"""The same, with the pattern and perhaps its form behind an escape, whose group is the secret.

An agent can print the beginning of a shape over and over, so none may search far from each place where it begins.
"""

ANY_WORD = re.compile(_any_of((word, "") for _, words, _ in _PATTERNS for word in words.split()).encode())
"""A text without such a word in small letters has none of the shapes that have words."""

KEY_BEGIN = r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
KEY_END = r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
KEY = rf"{KEY_BEGIN}[\s\S]*?(?:{KEY_END}|\Z)"

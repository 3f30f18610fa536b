# Sourced: drops the caller's settings for Python, pip, uv and the location of a git repository, which must not affect
# ours. Settings of a package index, of certificates and of caches stay, because the packages are locked by hash.
unset CDPATH # with it, `cd` prints a folder
for name in $(compgen -e); do
    case $name in
        UV_*INDEX* | UV_*CERT* | UV_*TLS | UV_*HOST | UV_*MIRROR | UV_HTTP_* | UV_FIND_LINKS | UV_KEYRING_PROVIDER) ;;
        UV_*CACHE* | UV_LINK_MODE | UV_CONCURRENT_*) ;;
        PIP_*INDEX* | PIP_*CERT | PIP_*HOST | PIP_*TIMEOUT | PIP_PROXY | PIP_RETRIES | PIP_FIND_LINKS) ;;
        PIP_*CACHE* | PIP_CONFIG_FILE | PIP_KEYRING_PROVIDER) ;;
        GIT_SSL_* | GIT_CONFIG* | GIT_HTTP_*) ;;
        UV_* | PIP_* | PYTHON* | GIT_* | VIRTUAL_ENV | CONDA_PREFIX) unset "$name" ;;
    esac
done
export PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 # over a configuration file
if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ] && [ -n "${PIP_INDEX_URL:-}" ]; then
    export UV_DEFAULT_INDEX=$PIP_INDEX_URL
fi

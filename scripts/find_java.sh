#!/bin/sh
# Print the home folder of a Java 17 or newer; install one where apt-get and the rights for it are there.
set -eu

major() { # the major version of the java under home folder $1, or 0
    version=$("$1/bin/java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    echo "${version:-0}"
}

usable() {
    [ -x "$1/bin/java" ] && [ "$(major "$1")" -ge 17 ]
}

home_on_path() { # the home folder of the java on PATH, whatever links or shims lead there
    command -v java >/dev/null 2>&1 || return 0
    java -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p'
}

search() {
    # The named folders first; then what lies on the machine, Spark's own versions (17, 21) before others.
    for home in "${JAVA_HOME:-}" "$(home_on_path)" \
        /usr/lib/jvm/*17* /usr/lib/jvm/*21* /usr/lib/jvm/* \
        /Library/Java/JavaVirtualMachines/*/Contents/Home \
        /opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home; do
        if [ -n "$home" ] && usable "$home"; then
            echo "$home"
            return 0
        fi
    done
    return 1
}

search && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "No Java 17 or newer found: installing openjdk-17-jre-headless" >&2
    export DEBIAN_FRONTEND=noninteractive
    for package in openjdk-17-jre-headless openjdk-21-jre-headless; do
        if { apt-get -qq update && apt-get -qq install -y --no-install-recommends "$package"; } >&2 </dev/null; then
            search && exit 0
        fi
    done
fi

cat >&2 <<'END'
wjoin needs Java 17 or newer to run Spark. None was found in JAVA_HOME, on PATH or under /usr/lib/jvm.
  Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless   (or openjdk-21-jre-headless)
  Fedora:         sudo dnf install java-21-openjdk-headless
  macOS:          brew install openjdk@17
Then run make again, or name one: make JAVA_HOME=/path/to/java demo
END
exit 1

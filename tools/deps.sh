#!/bin/sh
# Finds what the build needs and, on Debian and Ubuntu, installs what is missing; elsewhere it names the packages.
#
#   tools/deps.sh demo      a compiler, cmake, make, libyaml, jansson, zlib, SQLite, ncurses, libmicrohttpd
#   tools/deps.sh test      the same and cmocka (the default)
#   tools/deps.sh --check   as test, but only says what is missing
#
# What counts is whether a program compiles and links, not which packages are there. Silent when nothing is missing.
set -eu

say() { echo "tradewind: $*" >&2; }

kind=${1:-test} install=yes
case $kind in
    demo | test) ;;
    --check) kind=test install=no ;;
    *) echo "usage: tools/deps.sh [demo|test|--check]" >&2; exit 2 ;;
esac

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Probes

find_compiler() { compiler=${CC:-$(command -v cc || command -v gcc || echo cc)}; }

# links LIBRARY...: a program that includes their headers compiles and links.
links() {
    headers='' libraries=''
    for name; do
        headers="$headers $name.h"
        case $name in zlib) libraries="$libraries -lz" ;; ncurses) libraries="$libraries -lncursesw" ;; *) libraries="$libraries -l$name" ;; esac
    done
    {
        for header in stdarg.h stddef.h setjmp.h stdint.h stdio.h $headers; do echo "#include <$header>"; done
        echo "int main(void) { return 0; }"
    } >"$tmp/probe.c"
    # shellcheck disable=SC2086
    $compiler -o "$tmp/probe" "$tmp/probe.c" $libraries >"$tmp/probe.log" 2>&1
}

find_missing() {
    find_compiler
    missing=''
    for tool in cmake make; do command -v $tool >"$tmp/found" || missing="$missing $tool"; done
    libraries_wanted='yaml jansson zlib sqlite3 ncurses microhttpd'
    [ "$kind" = demo ] || libraries_wanted="$libraries_wanted cmocka"
    # shellcheck disable=SC2086
    if ! links $libraries_wanted; then
        cp "$tmp/probe.log" "$tmp/why"
        links || missing=" compiler$missing"
        for library in $libraries_wanted; do links "$library" || missing="$missing $library"; done
    fi
    missing=${missing# }
}

# Packages

# package SYSTEM THING: what SYSTEM calls it.
package() {
    case $1:$2 in
        apt-get:compiler) echo gcc libc6-dev ;;
        apt-get:zlib) echo zlib1g-dev ;;
        apt-get:*make) echo "$2" ;;
        apt-get:*) echo "lib$2-dev" ;;
        dnf:compiler | zypper:compiler) echo gcc glibc-devel ;;
        dnf:yaml | zypper:yaml) echo libyaml-devel ;;
        dnf:cmocka | zypper:cmocka) echo libcmocka-devel ;;
        dnf:ncurses | zypper:ncurses) echo ncurses-devel ;;
        apk:ncurses) echo ncurses-dev ;;
        dnf:microhttpd | zypper:microhttpd) echo libmicrohttpd-devel ;;
        apk:microhttpd) echo libmicrohttpd-dev ;;
        pacman:microhttpd | brew:microhttpd) echo libmicrohttpd ;;
        dnf:sqlite3) echo sqlite-devel ;;
        zypper:sqlite3) echo sqlite3-devel ;;
        apk:sqlite3) echo sqlite-dev ;;
        pacman:sqlite3 | brew:sqlite3) echo sqlite ;;
        zypper:jansson) echo libjansson-devel ;;
        dnf:jansson | dnf:zlib | zypper:zlib) echo "$2-devel" ;;
        pacman:compiler) echo gcc ;;
        pacman:yaml | brew:yaml) echo libyaml ;;
        apk:compiler) echo gcc musl-dev ;;
        apk:yaml | apk:jansson | apk:zlib | apk:cmocka) echo "$2-dev" ;;
        brew:compiler) echo gcc ;;
        *) echo "$2" ;;
    esac
}

packages_for() {
    packages=''
    for thing in $missing; do packages="$packages $(package "$1" "$thing")"; done
    packages=${packages# }
}

is_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>"$tmp/found")" = installed ]
}

apt_install() {
    packages_for apt-get
    absent=''
    for name in $packages; do is_installed "$name" || absent="$absent $name"; done
    absent=${absent# }
    if [ -z "$absent" ]; then
        say "$packages: installed, but $compiler cannot use it:"
        head -n 5 "$tmp/why" >&2
        exit 1
    fi
    sudo=''
    if [ "$(id -u)" != 0 ] && ! sudo=$(command -v sudo); then
        say "missing: $missing; as root: apt-get install --no-install-recommends $absent"
        exit 1
    fi
    say "installing $absent"
    apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Languages=none"
    # A source that cannot be read need not be one that we need, so only the installation decides.
    $apt update >"$tmp/apt.log" 2>&1 || true
    # shellcheck disable=SC2086
    if ! $apt install -y --no-install-recommends $absent >>"$tmp/apt.log" 2>&1; then
        grep '^[EW]:' "$tmp/apt.log" >"$tmp/why" || cp "$tmp/apt.log" "$tmp/why"
        head -n 3 "$tmp/why" >&2
        say "apt-get could not install $absent; is there a network, and may this user install?"
        exit 1
    fi
    find_missing
    [ -n "$missing" ] || return 0
    say "still missing after the installation: $missing"
    head -n 5 "$tmp/why" >&2
    exit 1
}

find_missing
[ -n "$missing" ] || exit 0
for system in apt-get dnf zypper pacman apk brew none; do
    command -v $system >"$tmp/found" && break
done
if [ $install = yes ] && [ "$system" = apt-get ]; then
    apt_install
elif [ "$system" = none ]; then
    say "missing: $missing; install them with their headers"
    exit 1
else
    packages_for "$system"
    case $system in pacman) how='pacman -S' ;; apk) how='apk add' ;; *) how="$system install" ;; esac
    say "missing: $missing; install with: $how $packages"
    exit 1
fi

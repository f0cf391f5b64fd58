#!/bin/sh
# Which cards the CUDA plug-in is built for: prints a list as CMake names it (86-real;75-virtual) and says it on stderr.
#
#   tools/cards.sh here NVCC       machine code for the cards of this machine (sm_90a where there is none), and
#                                  compute_75 PTX, which the driver compiles for all others
#   tools/cards.sh release NVCC    machine code for every kind of card, and compute_90 PTX for newer ones
#   tools/cards.sh absent          there is no nvcc: prints nothing, and says so where there is a card
#   tools/cards.sh --self-test     tries the above with made-up cards and compilers
#
# Cards come from nvidia-smi, in which they have their compute capability; nvcc tells what it can compile.
set -eu

say() { echo "tradewind: $*" >&2; }

# "8.6, NVIDIA GeForce RTX 3070", a line a card; nothing where there is no card, or no driver that shows one.
list_cards() {
    smi=$(PATH="$PATH:/usr/lib/wsl/lib" command -v nvidia-smi) || return 0
    limit=$(command -v timeout) && limit="$limit 30" || limit=
    $limit "$smi" --query-gpu=compute_cap,name --format=csv,noheader 2>/dev/null | grep -E '^[0-9]+\.[0-9], ' | sort -u || true
}

# knows KIND_NUMBER: true if nvcc compiles for it, as sm_86 or compute_75. An `a` behind it asks for the number alone.
knows() {
    case $1 in
    sm_*) "$nvcc" --list-gpu-code ;;
    *) "$nvcc" --list-gpu-arch ;;
    esac | grep -qx "${1%a}"
}

# The newest PTX that nvcc makes and a card of this architecture takes.
newest_ptx() {
    "$nvcc" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | sort -n | awk -v card="$1" '$1 <= card { n = $1 } END { print n }'
}

add() { list="${list:+$list;}$1"; }
tell() { told="${told:+$told, }$1"; }

# add_card 86 NAME
add_card() {
    if [ "$1" -lt 75 ]; then
        say "note: $2 is too old, sm_$1; sm_75 (Turing) or newer is needed"
        return
    fi
    code=$1
    [ "$1" != 90 ] || code=90a # Hopper's products need what only sm_90a has
    if knows "sm_$code"; then
        case ";$list;" in *";$code-real;"*) ;; *) add "$code-real" ;; esac
        tell "sm_$code ($2)"
    else
        ptx=$(newest_ptx "$1")
        say "note: $nvcc does not know sm_$1 ($2), which gets compute_$ptx PTX; a newer CUDA toolkit does"
        case ";$list;" in *";$ptx-virtual;"*) ;; *) [ "$ptx" = 75 ] || add "$ptx-virtual" ;; esac
    fi
}

here() {
    cards=$(list_cards)
    while IFS= read -r card; do
        [ -z "$card" ] || add_card "$(echo "${card%%,*}" | tr -d .)" "${card#*, }"
    done <<END
$cards
END
    if [ -z "$list" ]; then
        add 90a-real
        tell "sm_90a (no card that it runs on was found here)"
    fi
    add 75-virtual
    say "the CUDA plug-in is built for ${told:-PTX alone}; other cards get compute_75 PTX"
}

release() {
    for code in 75 80 86 89 90a 120; do
        if knows "sm_$code"; then
            add "$code-real"
            tell "sm_$code"
        else
            say "note: $nvcc does not know sm_$code, which is left out; CUDA 12.8 and newer know sm_120"
        fi
    done
    add 90-virtual
    say "the CUDA plug-in is built for $told; newer cards get compute_90 PTX"
}

absent() {
    card=$(list_cards | head -n 1)
    [ -z "$card" ] ||
        say "note: ${card#*, } is here, but no nvcc: without the CUDA plug-in the CPU computes; install the CUDA toolkit and put nvcc on the PATH"
}

# Self-test: a made-up nvidia-smi and nvcc, and what is expected of both.

# expect MODE LIST WORDS: the list, and words among those on stderr.
expect() {
    got=$(PATH="$tmp:$PATH" "$0" "$1" "$tmp/nvcc" 2>"$tmp/said") || got="status $?"
    if [ "$got" != "$2" ] || ! grep -qF -- "$3" "$tmp/said"; then
        echo "cards: self-test: $1 gave '$got' and said:"
        cat "$tmp/said"
        echo "cards: self-test: expected '$2' and '$3'"
        failed=1
    fi
}

# with_cards LINE...; with_nvcc NUMBER...
with_cards() {
    printf '%s\n' "$@" >"$tmp/cards"
    printf '#!/bin/sh\ncase "$*" in *compute_cap,name*) cat "%s" ;; *) exit 2 ;; esac\n' "$tmp/cards" >"$tmp/nvidia-smi"
    chmod +x "$tmp/nvidia-smi"
}

with_nvcc() {
    printf '#!/bin/sh\nkind=sm; [ "$1" = --list-gpu-code ] || kind=compute\nfor n in %s; do echo "${kind}_$n"; done\n' "$*" >"$tmp/nvcc"
    chmod +x "$tmp/nvcc"
}

self_test() {
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    failed=0
    old='50 75 80 86 87 89 90'
    new='75 80 86 87 88 89 90 100 110 103 120 121'
    with_nvcc $new
    with_cards '8.6, NVIDIA GeForce RTX 3070'
    expect here '86-real;75-virtual' 'built for sm_86 (NVIDIA GeForce RTX 3070); other cards get compute_75 PTX'
    with_cards '9.0, NVIDIA H200' '9.0, NVIDIA H200' '8.9, NVIDIA GeForce RTX 4080'
    expect here '89-real;90a-real;75-virtual' 'sm_89 (NVIDIA GeForce RTX 4080), sm_90a (NVIDIA H200)'
    with_cards '8.6, NVIDIA GeForce RTX 3070' '8.6, NVIDIA GeForce RTX 3090'
    expect here '86-real;75-virtual' 'sm_86 (NVIDIA GeForce RTX 3070), sm_86 (NVIDIA GeForce RTX 3090)'
    with_cards '6.1, NVIDIA GeForce GTX 1080' '12.0, NVIDIA GeForce RTX 5090'
    expect here '120-real;75-virtual' 'NVIDIA GeForce GTX 1080 is too old, sm_61'
    with_cards '6.1, NVIDIA GeForce GTX 1080'
    expect here '90a-real;75-virtual' 'sm_90a (no card that it runs on was found here)'
    with_cards '7.5, Tesla T4'
    expect here '75-real;75-virtual' 'sm_75 (Tesla T4)'
    with_cards 'NVIDIA-SMI has failed because it could not talk to the driver.'
    expect here '90a-real;75-virtual' 'sm_90a (no card that it runs on was found here)'
    expect release '75-real;80-real;86-real;89-real;90a-real;120-real;90-virtual' 'sm_90a, sm_120; newer cards get compute_90 PTX'
    with_nvcc $old
    expect release '75-real;80-real;86-real;89-real;90a-real;90-virtual' 'does not know sm_120, which is left out'
    with_cards '12.0, NVIDIA GeForce RTX 5090'
    expect here '90-virtual;75-virtual' 'does not know sm_120 (NVIDIA GeForce RTX 5090), which gets compute_90 PTX'
    expect absent '' 'NVIDIA GeForce RTX 5090 is here, but no nvcc'
    [ $failed = 1 ] || echo "cards: self-test passed"
    return $failed
}

list='' told=''
nvcc=${2:-}
case ${1-}:${nvcc:+given} in
here:given) here ;;
release:given) release ;;
absent:*) absent ;;
--self-test:) self_test; exit ;;
*) echo "usage: tools/cards.sh here|release NVCC | absent | --self-test" >&2; exit 2 ;;
esac
[ -z "$list" ] || echo "$list"

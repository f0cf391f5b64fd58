#!/bin/sh
# Fetches uPlot, which draws the charts of `tradewind watch --web`, from npm: one version, whose content is known.
#
#   tools/uplot.sh DIRECTORY    leaves uPlot.min.js, uPlot.min.css and uPlot.LICENSE.txt there
#
# Nothing is run from the package. Without npm or a network it says so and exits 1: everything but the page builds.
set -eu

version=1.6.32
sum=2883159c6ebccefbb95d751b0b82d010f9e1c0ec41b8bc96d401eda66e882935c89a46cb824332fa369b8cb8122cc6ac36e186cd09bf7a9ded3a4c93c6989023

[ $# = 1 ] || { echo "usage: tools/uplot.sh DIRECTORY" >&2; exit 2; }
say() { echo "uplot: $*" >&2; }

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
command -v npm >/dev/null || { say "npm is not installed: the page of \`tradewind watch --web\` is left out"; exit 1; }
if ! (cd "$tmp" && npm pack --silent --prefer-offline "uplot@$version" >names 2>why); then
    say "npm cannot fetch uplot $version: $(grep -v '^npm warn' "$tmp/why" | head -n 1)"
    exit 1
fi
package=$tmp/uplot-$version.tgz
if [ "$(sha512sum "$package" | cut -d ' ' -f 1)" != "$sum" ]; then
    say "the package uplot $version is not the one that this program knows; it is not used"
    exit 1
fi
tar -xzf "$package" -C "$tmp"
mkdir -p "$1"
cp "$tmp/package/dist/uPlot.min.css" "$1/uPlot.min.css"
cp "$tmp/package/LICENSE" "$1/uPlot.LICENSE.txt"
cp "$tmp/package/dist/uPlot.iife.min.js" "$1/uPlot.min.js" # last: what says that all are there

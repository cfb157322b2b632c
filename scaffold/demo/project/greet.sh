#!/bin/sh
# Greets somebody: greet.sh [options] [name]
set -eu

greeting=Hello
shout=no

while [ $# -gt 0 ]; do
  case $1 in
    -*) echo "greet: unknown option $1" >&2; exit 2 ;;
    *) break ;;
  esac
done

line="$greeting, ${1:-world}!"
printf '%s\n' "$line"

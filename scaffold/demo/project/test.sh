#!/bin/sh
# Runs every file in tests/ and counts. Fails when one check fails.
cd "$(dirname "$0")" || exit 1

passed=0
failed=0

# check <what> <expected> <command...>: the command's output must be the expected text.
check() {
  what=$1 expected=$2
  shift 2
  actual=$("$@" 2>&1)
  if [ "$actual" = "$expected" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAIL %s\n  expected: %s\n  actual:   %s\n' "$what" "$expected" "$actual"
  fi
}

for file in tests/*.sh; do
  . "./$file"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Scripts and data: shell, Python, YAML, licence lines.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Parse without leaving compiled files beside the sources.
python_syntax() {
	python3 -c 'import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name).read(), name)' "$@"
}

licence() {
	head -n 3 "$1" | grep -q 'SPDX-License-Identifier: '
}

mapfile -t shell < <(shell_scripts)
mapfile -t python < <(sources '*.py')
mapfile -t yaml < <(sources '*.yaml' '*.yml')
mapfile -t licensed < <(sources '*.c' '*.h' '*.sh' '*.py' '*Makefile' \
	'*Kbuild' '*.yaml' '*.awk')

plan $((${#shell[@]} + ${#python[@]} + ${#yaml[@]} + ${#licensed[@]}))
for file in "${shell[@]}"; do
	check "shellcheck: $file" shellcheck -x "$file"
done
for file in "${python[@]}"; do
	check "python: $file" python_syntax "$file"
done
for file in "${yaml[@]}"; do
	check "yamllint: $file" \
		yamllint -s -c selftests/static/yamllint.yaml "$file"
done
for file in "${licensed[@]}"; do
	check "licence line: $file" licence "$file"
done
finish

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write C from the netlink specification.

Input is a YAML specification of the schema "genetlink-legacy" with
"kernel-policy: per-op".  Output is one of

  uapi           commands, attributes and definitions for both sides
  kernel-header  what the module implements
  kernel-source  policies, operations, multicast groups (struct genl_ops, so
                 that one output serves every kernel since 5.10)
  user-header    declarations of the next
  user-source    names, types and lengths of attributes, names of enumerators

The kernel's own generator (tools/net/ynl) does not take operations that can
only be dumped, or requests without attributes, in this mode.
"""

import argparse
import pathlib
import sys

import yaml

SCALARS = {'u8': 1, 'u16': 2, 'u32': 4, 'u64': 8}
S16_MAX = 0x7fff

# What this generator understands; anything else is an error rather than
# being left out in silence.
KNOWN = {
    'family': {'name', 'protocol', 'kernel-policy', 'uapi-header',
               'c-family-name', 'c-version-name', 'doc', 'definitions',
               'attribute-sets', 'operations', 'mcast-groups'},
    'definition': {'type', 'name', 'doc', 'entries'},
    'entry': {'name', 'value', 'doc'},
    'set': {'name', 'doc', 'attributes'},
    'attribute': {'name', 'type', 'doc', 'checks', 'multi-attr',
                  'nested-attributes', 'enum', 'enum-as-flags'},
    'checks': {'min', 'max', 'exact-len'},
    'operation': {'name', 'doc', 'attribute-set', 'flags', 'do', 'dump',
                  'event'},
    'flags': {'admin-perm', 'uns-admin-perm'},
    'group': {'name', 'flags'},
    'group-flags': {'mcast-cap-net-admin', 'mcast-cap-sys-admin'},
}


class SpecError(Exception):
    """The specification says something that is not understood."""


def check(kind, item, where):
    """Refuse keys that are not in KNOWN."""
    unknown = set(item) - KNOWN[kind]
    if unknown:
        raise SpecError(f'{where}: {", ".join(sorted(unknown))} not supported')


def c_lower(name):
    """Name as a C identifier."""
    return name.replace('-', '_')


def c_upper(name):
    """Name as a C constant."""
    return c_lower(name).upper()


class Spec:
    """The specification, checked, with cross references resolved."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            self.yaml = yaml.safe_load(file)
        check('family', self.yaml, path)
        if (self.yaml['protocol'] != 'genetlink-legacy' or
                self.yaml['kernel-policy'] != 'per-op'):
            raise SpecError('only genetlink-legacy with per-op policies')
        self.name = self.yaml['name']
        self.low = c_lower(self.name)
        self.up = c_upper(self.name)
        self.definitions = self.yaml.get('definitions', [])
        self.sets = {s['name']: s for s in self.yaml['attribute-sets']}
        self.ops = self.yaml['operations']['list']
        self.groups = self.yaml.get('mcast-groups', {}).get('list', [])
        self._check()

    def _check(self):
        enums = set()
        for definition in self.definitions:
            check('definition', definition, definition['name'])
            if definition['type'] not in ('enum', 'flags'):
                raise SpecError(f'{definition["name"]}: type')
            for entry in definition['entries']:
                check('entry', entry, definition['name'])
            enums.add(definition['name'])
        for aset in self.sets.values():
            check('set', aset, aset['name'])
            for attr in aset['attributes']:
                where = f'{aset["name"]}.{attr["name"]}'
                check('attribute', attr, where)
                check('checks', attr.get('checks', {}), where)
                if attr['type'] not in (*SCALARS, 'binary', 'string', 'nest',
                                        'pad'):
                    raise SpecError(f'{where}: type {attr["type"]}')
                if 'enum' in attr and attr['enum'] not in enums:
                    raise SpecError(f'{where}: enum {attr["enum"]}')
                if (attr['type'] == 'nest' and
                        attr['nested-attributes'] not in self.sets):
                    raise SpecError(f'{where}: nested-attributes')
        for group in self.groups:
            check('group', group, group['name'])
            check('group-flags', group.get('flags', []), group['name'])
        for oper in self.ops:
            check('operation', oper, oper['name'])
            names = {a['name'] for a in
                     self.sets[oper['attribute-set']]['attributes']}
            for flag in oper.get('flags', []):
                check('flags', [flag], oper['name'])
            for used in self.used(oper):
                if used not in names:
                    raise SpecError(f'{oper["name"]}: attribute {used}')

    @staticmethod
    def used(oper):
        """Names of all attributes of an operation's messages."""
        used = list(oper.get('event', {}).get('attributes', []))
        for mode in ('do', 'dump'):
            for message in ('request', 'reply'):
                used += oper.get(mode, {}).get(message, {}).get(
                    'attributes', [])
        return used

    def values(self, definition):
        """(constant, value, entry) of each enumerator."""
        value = 0
        for number, entry in enumerate(definition['entries']):
            if definition['type'] == 'flags':
                value = 1 << number
            else:
                value = entry.get('value', value)
            yield (f'{self.up}_{c_upper(definition["name"])}_'
                   f'{c_upper(entry["name"])}', value, entry)
            value += 1

    def attr_const(self, aset, name):
        """Constant of an attribute."""
        return f'{self.up}_A_{c_upper(aset)}_{c_upper(name)}'

    def request(self, oper):
        """Attributes that may be in a request, in the order of the set."""
        names = set()
        for mode in ('do', 'dump'):
            names.update(oper.get(mode, {}).get('request', {}).get(
                'attributes', []))
        return [a for a in self.sets[oper['attribute-set']]['attributes']
                if a['name'] in names]


class Writer:
    """Collects lines."""

    def __init__(self, spdx, header):
        self.lines = []
        if header:
            self.put(f'/* SPDX-License-Identifier: {spdx} */')
        else:
            self.put(f'// SPDX-License-Identifier: {spdx}')
        self.put('/* Generated from Documentation/netlink/specs/atp.yaml by '
                 '"make netlink-gen". */')

    def put(self, *lines):
        """Append lines."""
        self.lines += lines

    def comment(self, text, first=' * ', rest=' * '):
        """Append words of a block comment within 80 columns."""
        line = first
        empty = True
        for word in text.split():
            if not empty and len(line) + 1 + len(word) > 79:
                self.put(line)
                line = rest
                empty = True
            line += word if empty else ' ' + word
            empty = False
        self.put(line.rstrip())

    def text(self):
        """What was written."""
        return '\n'.join(self.lines) + '\n'


def enum_block(out, consts, name=''):
    """An enum; consts are (constant, value or None)."""
    out.put(f'enum {name} {{' if name else 'enum {')
    for const, value in consts:
        out.put(f'\t{const} = {value},' if value is not None
                else f'\t{const},')


def gen_uapi(spec):
    """The uapi header."""
    out = Writer('GPL-2.0 WITH Linux-syscall-note', True)
    guard = f'_UAPI_LINUX_{spec.up}_NETLINK_H'
    out.put('/*')
    out.comment(spec.yaml['doc'])
    out.put(' */', f'#ifndef {guard}', f'#define {guard}', '',
            f'#define {c_upper(spec.yaml["c-family-name"])}\t\t'
            f'"{spec.name}"',
            f'#define {c_upper(spec.yaml["c-version-name"])}\t1')
    for group in spec.groups:
        name = group['name']
        out.put(f'#define {spec.up}_MCGRP_{c_upper(name)}\t"{name}"')

    for definition in spec.definitions:
        name = f'{spec.low}_{c_lower(definition["name"])}'
        out.put('', '/**')
        out.comment(definition['doc'], f' * enum {name} - ')
        for const, _, entry in spec.values(definition):
            out.comment(entry.get('doc', entry['name']), f' * @{const}: ',
                        ' *\t')
        out.put(' */')
        enum_block(out, [(c, v) for c, v, _ in spec.values(definition)], name)
        out.put('};')

    for aset in spec.sets.values():
        prefix = f'{spec.up}_A_{c_upper(aset["name"])}'
        out.put('', f'/* Attributes "{aset["name"]}" */')
        consts = []
        for number, attr in enumerate(aset['attributes'], 1):
            consts.append((spec.attr_const(aset['name'], attr['name']),
                           number if number == 1 else None))
        enum_block(out, consts)
        out.put('', f'\t__{prefix}_MAX,',
                f'\t{prefix}_MAX = (__{prefix}_MAX - 1)', '};')

    out.put('', '/* Commands */')
    consts = [(f'{spec.up}_CMD_{c_upper(o["name"])}', None if n else 1)
              for n, o in enumerate(spec.ops)]
    enum_block(out, consts)
    out.put('', f'\t__{spec.up}_CMD_MAX,',
            f'\t{spec.up}_CMD_MAX = (__{spec.up}_CMD_MAX - 1)', '};', '',
            f'#endif /* {guard} */')
    return out.text()


def policy_name(spec, oper):
    """Name of the policy of an operation."""
    return f'{spec.low}_{c_lower(oper["name"])}_nl_policy'


def handlers(spec, oper):
    """(member, function) of an operation."""
    base = f'{spec.low}_nl_{c_lower(oper["name"])}'
    return [(f'{mode}it', f'{base}_{mode}it') for mode in ('do', 'dump')
            if mode in oper]


def gen_kernel_header(spec):
    """What the module implements and what it is given."""
    out = Writer('GPL-2.0', True)
    guard = f'_{spec.up}_NETLINK_GEN_H'
    calls = [o for o in spec.ops if 'event' not in o]
    out.put(f'#ifndef {guard}', f'#define {guard}', '',
            '#include <net/genetlink.h>', '#include <net/netlink.h>',
            f'#include <{spec.yaml["uapi-header"]}>', '',
            f'extern const struct genl_ops {spec.low}_nl_ops[{len(calls)}];')
    if spec.groups:
        out.put('', '/* Indices of the multicast groups */', 'enum {')
        out.put(*[f'\t{spec.up}_NLGRP_{c_upper(g["name"])},'
                  for g in spec.groups])
        out.put('};', '', f'extern const struct genl_multicast_group '
                f'{spec.low}_nl_mcgrps[{len(spec.groups)}];')
    out.put('')
    for oper in calls:
        for member, function in handlers(spec, oper):
            if member == 'doit':
                out.put(f'int {function}(struct sk_buff *skb, '
                        'struct genl_info *info);')
            else:
                head = f'int {function}('
                out.put(f'{head}struct sk_buff *skb,',
                        '\t' * (len(head) // 8) + ' ' * (len(head) % 8) +
                        'struct netlink_callback *cb);')
    out.put('', f'#endif /* {guard} */')
    return out.text()


def policy_entry(spec, aset, attr, ranges):
    """Initializer of one attribute in a policy."""
    checks = attr.get('checks', {})
    kind = attr['type']
    if kind == 'nest':
        inner = c_lower(attr['nested-attributes'])
        return f'NLA_POLICY_NESTED({spec.low}_{inner}_nl_policy)'
    if kind == 'binary':
        return f'NLA_POLICY_EXACT_LEN({checks["exact-len"]})'
    if kind == 'string':
        return '{ .type = NLA_NUL_STRING }'
    if kind == 'pad':
        return '{ .type = NLA_REJECT }'
    nla = f'NLA_{kind.upper()}'
    low, high = checks.get('min'), checks.get('max')
    if low is None and high is None:
        return f'{{ .type = {nla} }}'
    if max(low or 0, high or 0) > S16_MAX:
        name = f'{spec.low}_{c_lower(aset)}_{c_lower(attr["name"])}_range'
        ranges[name] = (low or 0, high or (1 << 8 * SCALARS[kind]) - 1)
        return f'NLA_POLICY_FULL_RANGE({nla}, &{name})'
    if high is None:
        return f'NLA_POLICY_MIN({nla}, {low})'
    if low is None:
        return f'NLA_POLICY_MAX({nla}, {high})'
    return f'NLA_POLICY_RANGE({nla}, {low}, {high})'


def put_policy(spec, out, name, aset, attrs, ranges):
    """One policy table."""
    last = spec.attr_const(aset, attrs[-1]['name'])
    out.put('', f'static const struct nla_policy {name}[] = {{')
    for attr in attrs:
        const = spec.attr_const(aset, attr['name'])
        entry = policy_entry(spec, aset, attr, ranges)
        line = f'\t[{const}] = {entry},'
        if len(line) + 7 > 80:
            out.put(f'\t[{const}] =', f'\t\t{entry},')
        else:
            out.put(line)
    out.put('};')
    return last


def gen_kernel_source(spec):
    """Policies, operations, groups."""
    out = Writer('GPL-2.0', False)
    body = Writer('', True)
    body.lines = []
    ranges = {}
    calls = [o for o in spec.ops if 'event' not in o]

    done = set()

    def nested(attrs):
        for attr in attrs:
            inner = attr.get('nested-attributes')
            if inner and inner not in done:
                done.add(inner)
                inner_attrs = spec.sets[inner]['attributes']
                nested(inner_attrs)
                put_policy(spec, body,
                           f'{spec.low}_{c_lower(inner)}_nl_policy', inner,
                           inner_attrs, ranges)

    for oper in calls:
        nested(spec.request(oper))
    last = {}
    for oper in calls:
        attrs = spec.request(oper)
        if attrs:
            last[oper['name']] = put_policy(
                spec, body, policy_name(spec, oper), oper['attribute-set'],
                attrs, ranges)

    body.put('', f'const struct genl_ops {spec.low}_nl_ops[] = {{')
    for oper in calls:
        body.put('\t{', f'\t\t.cmd\t\t= {spec.up}_CMD_'
                 f'{c_upper(oper["name"])},')
        for member, function in handlers(spec, oper):
            body.put(f'\t\t.{member}\t\t= {function},')
        if oper['name'] in last:
            body.put(f'\t\t.policy\t\t= {policy_name(spec, oper)},',
                     f'\t\t.maxattr\t= {last[oper["name"]]},')
        flags = [f'GENL_{c_upper(f)}' for f in oper.get('flags', [])]
        if flags:
            body.put(f'\t\t.flags\t\t= {" | ".join(flags)},')
        body.put('\t},')
    body.put('};')
    if spec.groups:
        body.put('', f'const struct genl_multicast_group '
                 f'{spec.low}_nl_mcgrps[] = {{')
        for group in spec.groups:
            name = c_upper(group['name'])
            body.put(f'\t[{spec.up}_NLGRP_{name}] = {{',
                     f'\t\t.name\t= {spec.up}_MCGRP_{name},')
            flags = [f'GENL_{c_upper(f)}' for f in group.get('flags', [])]
            if flags:
                body.put(f'\t\t.flags\t= {" | ".join(flags)},')
            body.put('\t},')
        body.put('};')

    out.put('#include "netlink_gen.h"')
    for name, (low, high) in ranges.items():
        # 6.1 has no const at the pointer to it
        out.put('', f'static struct netlink_range_validation {name} = {{',
                f'\t.min\t= {low}ULL,', f'\t.max\t= {high}ULL,', '};')
    out.put(*body.lines)
    return out.text()


def gen_user_header(spec):
    """Tables for user space."""
    out = Writer('GPL-2.0', True)
    guard = f'{spec.up}_NETLINK_GEN_H'
    out.put(f'#ifndef {guard}', f'#define {guard}', '',
            '#include "nltable.h"', '')
    for aset in spec.sets:
        out.put(f'extern const struct nl_set {spec.low}_set_{c_lower(aset)};')
    out.put('')
    for definition in spec.definitions:
        name = c_lower(definition['name'])
        out.put(f'extern const struct nl_enum {spec.low}_enum_{name};')
    out.put('', f'#endif /* {guard} */')
    return out.text()


def gen_user_source(spec):
    """Tables for user space."""
    out = Writer('GPL-2.0', False)
    out.put(f'#include <{spec.yaml["uapi-header"]}>',
            '#include "netlink_gen.h"')
    for aset in spec.sets.values():
        low = c_lower(aset['name'])
        out.put('', f'static const struct nl_attr {low}_attrs[] = {{')
        for attr in aset['attributes']:
            kind = c_upper(attr['type'])
            const = spec.attr_const(aset['name'], attr['name'])
            parts = [f'"{c_lower(attr["name"])}"', f'NL_{kind}']
            out.put(f'\t[{const}] = {{', f'\t\t.name = {parts[0]},',
                    f'\t\t.type = {parts[1]},')
            length = attr.get('checks', {}).get('exact-len')
            if length is not None:
                out.put(f'\t\t.len = {length},')
            if attr.get('multi-attr'):
                out.put('\t\t.multi = true,')
            if kind == 'NEST':
                inner = c_lower(attr['nested-attributes'])
                out.put(f'\t\t.nested = &{spec.low}_set_{inner},')
            out.put('\t},')
        out.put('};', '', f'const struct nl_set {spec.low}_set_{low} = {{',
                f'\t.name = "{aset["name"]}",', f'\t.attrs = {low}_attrs,',
                f'\t.max = {spec.up}_A_{c_upper(aset["name"])}_MAX,', '};')
    for definition in spec.definitions:
        low = c_lower(definition['name'])
        out.put('', f'static const char * const {low}_names[] = {{')
        for const, _, entry in spec.values(definition):
            out.put(f'\t[{const}] = "{entry["name"]}",')
        out.put('};', '', f'const struct nl_enum {spec.low}_enum_{low} = {{',
                f'\t.names = {low}_names,',
                f'\t.count = ARRAY_SIZE({low}_names),',
                '};')
    return out.text()


MODES = {
    'uapi': gen_uapi,
    'kernel-header': gen_kernel_header,
    'kernel-source': gen_kernel_source,
    'user-header': gen_user_header,
    'user-source': gen_user_source,
}


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description='C from a netlink spec')
    parser.add_argument('--spec', required=True)
    parser.add_argument('--mode', required=True, choices=MODES)
    parser.add_argument('-o', '--output', type=pathlib.Path)
    args = parser.parse_args()
    try:
        text = MODES[args.mode](Spec(args.spec))
    except (SpecError, KeyError) as err:
        sys.exit(f'{args.spec}: {err}')
    if not args.output:
        sys.stdout.write(text)
    elif not args.output.exists() or args.output.read_text() != text:
        args.output.write_text(text)


if __name__ == '__main__':
    main()

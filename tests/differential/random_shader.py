"""Random GLSL compute shaders whose results every correct implementation agrees on, bit for bit.

Integers wrap, shifts are masked, divisions guarded. Floats take only values on which IEEE 754 arithmetic is
exact (small integers and halves), so that contraction and reassociation change nothing. Loops are counted,
barriers stand where control is uniform, and no invocation reads what another may be writing.
"""

import random

WORDS = 4096
INVOCATIONS_A_GRID = 6

SIZES = [(64, 1, 1), (32, 1, 1), (16, 16, 1), (8, 8, 1), (7, 3, 2), (24, 5, 1), (1, 1, 1), (33, 1, 1), (4, 4, 4),
         (128, 1, 1), (100, 1, 1), (16, 4, 1), (2, 32, 1)]


# Integer types of other widths: bits, and a view of the source buffer.
NARROW = {"int64_t": (64, "source64"), "int16_t": (16, "source16"), "uint8_t": (8, "source8")}


class Shader:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.size = self.rng.choice(SIZES)
        self.count = self.size[0] * self.size[1] * self.size[2]
        self.lines = []
        self.indent = 1
        self.names = 0
        kinds = ["int", "uint", "float", "bool", "ivec3", "uvec4"]
        # Half the shaders use types of other widths as well.
        self.wide = self.rng.random() < 0.5
        if self.wide:
            kinds += [*NARROW, "float16_t", "double"]
        self.scopes = [{kind: [] for kind in kinds}]
        self.arrays = []
        self.loops = 0
        self.shared = self.rng.random() < 0.5
        self.subgroups = self.rng.random() < 0.4
        self.functions = []
        self.budget = self.rng.randint(8, 45)

    # --- expressions ---

    def pick(self, kind):
        """A variable of the kind that is in scope, or None."""
        found = [name for scope in self.scopes for name in scope[kind]]
        return self.rng.choice(found) if found else None

    def expr(self, kind, depth=3):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.2:
            name = self.pick(kind)
            return name if name and rng.random() < 0.8 else self.leaf(kind)
        d = depth - 1
        e = lambda k: self.expr(k, d)
        if kind in NARROW:
            return self.narrow(kind, e)
        if kind in ("float16_t", "double"):
            return self.other_float(kind, e)
        if self.wide and kind == "int" and rng.random() < 0.2:
            source = rng.choice([*NARROW, "float16_t", "double"])
            return f"int({e(source)})"
        if self.wide and kind == "float" and rng.random() < 0.15:
            return f"small(float({e(rng.choice(['float16_t', 'double']))}))"
        if self.wide and kind == "bool" and rng.random() < 0.2:
            other = rng.choice([*NARROW, "float16_t", "double"])
            return f"({e(other)} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {e(other)})"
        if kind == "int":
            choice = rng.randrange(17)
            if choice < 3:
                return f"({e('int')} {rng.choice('+-*')} {e('int')})"
            if choice == 3:
                return f"({e('int')} {rng.choice(['&', '|', '^'])} {e('int')})"
            if choice == 4:
                return f"({e('int')} {rng.choice(['<<', '>>'])} ({e('int')} & 31))"
            if choice == 5:
                return f"safe_div({e('int')}, {e('int')})"
            if choice == 6:
                return f"({e('bool')} ? {e('int')} : {e('int')})"
            if choice == 7:
                return f"{rng.choice(['min', 'max'])}({e('int')}, {e('int')})"
            if choice == 8:
                return f"int({e('uint')})"
            if choice == 9:
                return f"bitfieldExtract({e('int')}, {rng.randrange(20)}, {rng.randrange(12)})"
            if choice == 10:
                return f"{rng.choice(['bitCount', 'findLSB', 'findMSB', 'abs', 'sign', '~', '-'])}({e('int')})"
            if choice == 11:
                return f"int({e('float')})"
            if choice == 12:
                return f"{e('ivec3')}.{rng.choice('xyz')}"
            if choice == 13 and self.arrays:
                name, length = rng.choice(self.arrays)
                return f"{name}[{e('int')} & {length - 1}]"
            if choice == 14:
                return f"{e('ivec3')}[{e('int')} & 1]"
            if choice == 15 and self.functions:
                return f"{rng.choice(self.functions)}({e('int')}, {e('int')})"
            return f"clamp({e('int')}, -{rng.randrange(1000)}, {rng.randrange(1000)})"
        if kind == "uint":
            choice = rng.randrange(12)
            if choice < 3:
                return f"({e('uint')} {rng.choice('+-*')} {e('uint')})"
            if choice == 3:
                return f"({e('uint')} {rng.choice(['&', '|', '^'])} {e('uint')})"
            if choice == 4:
                return f"({e('uint')} {rng.choice(['<<', '>>'])} ({e('uint')} & 31u))"
            if choice == 5:
                return f"({e('uint')} {rng.choice('/%')} ({e('uint')} | 1u))"
            if choice == 6:
                return f"({e('bool')} ? {e('uint')} : {e('uint')})"
            if choice == 7:
                return f"uint({e('int')})"
            if choice == 8:
                return f"bitfieldInsert({e('uint')}, {e('uint')}, {rng.randrange(20)}, {rng.randrange(12)})"
            if choice == 9:
                return f"{rng.choice(['bitfieldReverse', '~'])}({e('uint')})"
            if choice == 10:
                return f"{e('uvec4')}.{rng.choice('xyzw')}"
            return f"source[({e('uint')}) & {WORDS - 1}u]"
        if kind == "float":
            choice = rng.randrange(9)
            if choice < 2:
                # Kept small: sums stay exact.
                return f"small({e('float')} {rng.choice('+-')} {e('float')})"
            if choice == 2:
                return f"small({e('float')} * {rng.choice(['0.5', '2.0', '-1.0', '4.0'])})"
            if choice == 3:
                return f"{rng.choice(['floor', 'ceil', 'abs', 'trunc', 'sign', '-', 'roundEven', 'fract'])}({e('float')})"
            if choice == 4:
                return f"{rng.choice(['min', 'max', 'step'])}({e('float')}, {e('float')})"
            if choice == 5:
                return f"float({e('int')} & 255)"
            if choice == 6:
                return f"({e('bool')} ? {e('float')} : {e('float')})"
            if choice == 7:
                return f"small(dot(vec3({e('int')} & 15, {e('int')} & 7, 1), vec3(1, 2, {e('int')} & 3)))"
            return f"small((mat2(1, 2, 3, 4) * vec2({e('int')} & 15, {e('int')} & 15)).{rng.choice('xy')})"
        if kind == "bool":
            choice = rng.randrange(8)
            compare = rng.choice(["<", "<=", ">", ">=", "==", "!="])
            if choice < 3:
                return f"({e('int')} {compare} {e('int')})"
            if choice == 3:
                return f"({e('uint')} {compare} {e('uint')})"
            if choice == 4:
                return f"({e('float')} {compare} {e('float')})"
            if choice == 5:
                return f"({e('bool')} {rng.choice(['&&', '||', '^^'])} {e('bool')})"
            if choice == 6:
                return f"{rng.choice(['any', 'all'])}(lessThan({e('ivec3')}, {e('ivec3')}))"
            return f"!({e('bool')})"
        if kind == "ivec3":
            choice = rng.randrange(4)
            if choice == 0:
                return f"ivec3({e('int')}, {e('int')}, {e('int')})"
            if choice == 1:
                return f"({e('ivec3')} {rng.choice('+-*')} {e('ivec3')})"
            if choice == 2:
                return f"{e('ivec3')}.{''.join(rng.choice('xyz') for _ in range(3))}"
            return f"mix({e('ivec3')}, {e('ivec3')}, lessThan({e('ivec3')}, {e('ivec3')}))"
        choice = rng.randrange(3)
        if choice == 0:
            return f"uvec4({e('uint')}, {e('uint')}, {e('uint')}, {e('uint')})"
        if choice == 1:
            return f"({e('uvec4')} ^ {e('uvec4')})"
        return f"source4[({e('uint')}) & {WORDS // 4 - 1}u]"

    def narrow(self, kind, e):
        """Integers of other widths wrap like others; shifts stay inside the width."""
        rng = self.rng
        bits, view = NARROW[kind]
        choice = rng.randrange(11)
        if choice < 3:
            return f"{kind}({e(kind)} {rng.choice('+-*')} {e(kind)})"
        if choice == 3:
            return f"({e(kind)} {rng.choice(['&', '|', '^'])} {e(kind)})"
        if choice == 4:
            return f"{kind}({e(kind)} {rng.choice(['<<', '>>'])} ({e('int')} & {bits - 1}))"
        if choice == 5:
            return f"{kind}({e('int')})"
        if choice == 6:
            return f"{kind}({e(rng.choice(list(NARROW)))})"
        if choice == 7:
            return f"({e('bool')} ? {e(kind)} : {e(kind)})"
        if choice == 8:
            return f"{rng.choice(['min', 'max'])}({e(kind)}, {e(kind)})"
        if choice == 9:
            return f"{kind}({rng.choice('~-')}{e(kind)})"
        return f"{view}[({e('uint')}) & {WORDS * 32 // bits - 1}u]"

    def other_float(self, kind, e):
        """Small whole numbers and halves, on which arithmetic of 16 bits is exact."""
        rng = self.rng
        small = "small16" if kind == "float16_t" else "small64"
        choice = rng.randrange(7)
        if choice < 2:
            return f"{small}({e(kind)} {rng.choice('+-')} {e(kind)})"
        if choice == 2:
            return f"{small}({e(kind)} * {kind}({rng.choice(['2.0', '-1.0'])}))"
        if choice == 3:
            return f"{rng.choice(['floor', 'ceil', 'abs', 'trunc', 'sign', '-'])}({e(kind)})"
        if choice == 4:
            return f"{rng.choice(['min', 'max'])}({e(kind)}, {e(kind)})"
        if choice == 5:
            return f"({e('bool')} ? {e(kind)} : {e(kind)})"
        return f"{kind}({e('int')} & 15)"

    def leaf(self, kind):
        rng = self.rng
        if kind in NARROW:
            return rng.choice([f"{kind}({rng.randrange(256)})", f"{kind}(me)", f"{NARROW[kind][1]}[me]"])
        if kind in ("float16_t", "double"):
            return rng.choice([f"{kind}({rng.randint(-16, 16)}.5)", f"{kind}(gl_LocalInvocationIndex & 31u)"])
        if kind == "int":
            return rng.choice([str(rng.randint(-20, 20)), str(rng.randint(-2**31 + 1, 2**31 - 1)),
                               "int(gl_LocalInvocationIndex)", "int(gl_GlobalInvocationID.x)",
                               "int(gl_LocalInvocationID.y)", "int(gl_WorkGroupID.x)", "counter"])
        if kind == "uint":
            return rng.choice([f"{rng.randrange(100)}u", f"{rng.randrange(2**32)}u", "gl_LocalInvocationID.x",
                               "gl_WorkGroupID.y", "me", "source[me]"])
        if kind == "float":
            return rng.choice([f"{rng.randint(-16, 16)}.0", f"{rng.randint(-16, 16)}.5",
                               "float(gl_LocalInvocationIndex)"])
        if kind == "bool":
            return rng.choice(["true", "false", "((gl_LocalInvocationIndex & 1u) == 0u)", "(counter > 3)"])
        if kind == "ivec3":
            return rng.choice(["ivec3(1, 2, 3)", "ivec3(gl_LocalInvocationID)", "ivec3(gl_GlobalInvocationID)"])
        return rng.choice(["uvec4(1, 2, 3, 4)", "source4[me >> 2]", "uvec4(me)"])

    # --- statements ---

    def line(self, text):
        self.lines.append("    " * self.indent + text)

    def block(self, body):
        self.scopes.append({kind: [] for kind in self.scopes[0]})
        self.indent += 1
        body()
        self.indent -= 1
        self.scopes.pop()

    def declare(self):
        kind = self.rng.choice(list(self.scopes[0]))
        self.names += 1
        name = f"v{self.names}"
        self.line(f"{kind} {name} = {self.expr(kind)};")
        self.scopes[-1][kind].append(name)

    def assign(self):
        kind = self.rng.choice(list(self.scopes[0]))
        name = self.pick(kind)
        if not name:
            return self.declare()
        if kind == "ivec3" and self.rng.random() < 0.5:
            name += "." + self.rng.choice("xyz")
            kind = "int"
        self.line(f"{name} = {self.expr(kind)};")

    def store_array(self):
        if not self.arrays:
            return self.assign()
        name, length = self.rng.choice(self.arrays)
        self.line(f"{name}[{self.expr('int')} & {length - 1}] = {self.expr('int')};")

    def if_(self, depth):
        self.line(f"if ({self.expr('bool')}) {{")
        self.block(lambda: self.statements(depth - 1))
        if self.rng.random() < 0.5:
            self.line("} else {")
            self.block(lambda: self.statements(depth - 1))
        self.line("}")

    def loop(self, depth):
        self.names += 1
        i = f"i{self.names}"
        trips = self.rng.choice([str(self.rng.randint(1, 6)), f"({self.expr('int', 1)} & 7)"])
        form = self.rng.randrange(3)
        hint = self.rng.choice(["", "[[unroll]] ", "[[dont_unroll]] "])
        if form == 0:
            self.line(f"{hint}for (int {i} = 0; {i} < {trips}; ++{i}) {{")
        elif form == 1:
            self.line(f"int {i} = 0;")
            self.line(f"while ({i} < {trips}) {{")
        else:
            self.line(f"int {i} = 0;")
            self.line("do {")

        def body():
            if form != 0:
                self.line(f"++{i};")
            self.line("if (++counter > 300) break;")
            self.loops += 1
            self.statements(depth - 1)
            self.loops -= 1
        self.block(body)
        self.line("}" if form != 2 else f"}} while ({i} < {trips});")

    def switch(self, depth):
        self.line(f"switch ({self.expr('int')} & 3) {{")
        labels = self.rng.sample(["case 0:", "case 1:", "case 2:", "case 3:", "default:"], self.rng.randint(2, 5))
        for label in labels:
            self.line(label)
            if self.rng.random() < 0.15 and label != labels[-1]:
                continue
            self.line("{")
            self.block(lambda: self.statements(depth - 1))
            self.line("}")
            if self.rng.random() < 0.75 or label == labels[-1]:
                self.line("break;")
        self.line("}")

    def statements(self, depth):
        for _ in range(self.rng.randint(1, 4)):
            if self.budget <= 0:
                break
            self.budget -= 1
            choice = self.rng.random()
            if self.subgroups and self.rng.random() < 0.15:
                self.gather()
            elif depth <= 0 or choice < 0.3:
                self.declare()
            elif choice < 0.5:
                self.assign()
            elif choice < 0.58:
                self.store_array()
            elif choice < 0.74:
                self.if_(depth)
            elif choice < 0.86:
                self.loop(depth)
            elif choice < 0.93:
                self.switch(depth)
            elif self.loops and choice < 0.97:
                self.line(f"if ({self.expr('bool')}) {self.rng.choice(['break', 'continue'])};")
            else:
                self.line(f"digest(uint({self.expr('int')}));")
        if not self.lines or self.lines[-1].rstrip().endswith((":", "{")):
            self.line(";")

    def exchange(self):
        """All invocations, at a uniform point: write to shared memory, wait, read another's value."""
        slot = f"({self.rng.randint(1, 97)}u * gl_LocalInvocationIndex + {self.rng.randrange(64)}u) % {self.count}u"
        self.line(f"pool[gl_LocalInvocationIndex] = {self.expr('uint')};")
        self.line("barrier();")
        self.names += 1
        self.line(f"uint v{self.names} = pool[{slot}];")
        self.scopes[-1]["uint"].append(f"v{self.names}")
        self.line("barrier();")
        if self.rng.random() < 0.5:
            self.line("if (gl_LocalInvocationIndex == 0u) tally = 0u;")
            self.line("barrier();")
            op = self.rng.choice(["atomicAdd", "atomicXor", "atomicMax", "atomicOr", "atomicMin"])
            self.line(f"if ({self.expr('bool')}) {op}(tally, {self.expr('uint')});")
            self.line("barrier();")
            self.names += 1
            self.line(f"uint v{self.names} = tally;")
            self.scopes[-1]["uint"].append(f"v{self.names}")
            self.line("barrier();")

    def gather(self):
        """Wherever lanes are: what comes out does not depend on the size of subgroups, nor on which lanes
        are together. The first lane adds what the subgroup finds to what all subgroups find."""
        value, elect = self.expr("uint", 2), "if (subgroupElect())"
        choice = self.rng.randrange(8)
        if choice < 4:
            slot, op = choice, ["Add", "Max", "Xor", "Or"][choice]
            self.line(f"{{ uint s = subgroup{op}({value}); {elect} atomic{op}(gathered[{slot}], s); }}")
        elif choice == 4:
            self.line(f"{{ uvec4 b = subgroupBallot({self.expr('bool', 2)}); "
                      f"{elect} atomicAdd(gathered[0], subgroupBallotBitCount(b)); }}")
        elif choice == 5:
            vote = self.rng.choice(["subgroupAny({})", "!subgroupAll(!({}))"]).format(self.expr("bool", 2))
            self.line(f"if ({vote}) {{ {elect} atomicOr(gathered[3], {self.rng.randrange(2**32)}u); }}")
        elif choice == 6:
            self.line(f"{{ uint x = {value}; digest(subgroupInclusiveAdd(x) - subgroupExclusiveAdd(x)); }}")
        else:
            self.line(f"digest(subgroupShuffle({value}, gl_SubgroupInvocationID));")

    def uniform_loop(self):
        trips = self.rng.randint(1, 4)
        self.names += 1
        self.line(f"for (uint u{self.names} = 0u; u{self.names} < {trips}u; ++u{self.names}) {{")

        def body():
            self.statements(1)
            self.exchange()
            self.line(f"digest({self.expr('uint')});")
        self.block(body)
        self.line("}")

    def function(self):
        self.names += 1
        name = f"f{self.names}"
        saved = self.scopes, self.arrays
        self.scopes = [{kind: [] for kind in self.scopes[0]}]
        self.scopes[0]["int"] += ["a", "b"]
        self.arrays = []
        self.indent = 0
        self.line(f"int {name}(int a, int b) {{")

        def body():
            self.line(f"if ({self.expr('bool', 2)}) return {self.expr('int', 2)};")
            self.line(f"for (int i = 0; i < 3; ++i) {{ if ({self.expr('bool', 2)}) return i * {self.expr('int', 1)}; a ^= i; }}")
            self.line(f"return {self.expr('int', 2)};")
        self.block(body)
        self.line("}")
        self.scopes, self.arrays = saved
        self.indent = 1
        self.functions.append(name)

    def text(self):
        for _ in range(self.rng.randrange(3)):
            self.function()
        functions = self.lines
        self.lines = []
        for _ in range(self.rng.randrange(3)):
            self.names += 1
            length = self.rng.choice([2, 4, 8, 16])
            self.line(f"int t{self.names}[{length}];")
            self.line(f"for (int i = 0; i < {length}; ++i) t{self.names}[i] = i * {self.rng.randint(-9, 9)};")
            self.arrays.append((f"t{self.names}", length))
        if self.subgroups:
            self.line("if (gl_LocalInvocationIndex < 4u) gathered[gl_LocalInvocationIndex] = 0u;")
            if self.count < 4:
                self.line("gathered = uint[](0u, 0u, 0u, 0u);")
            self.line("barrier();")
        parts = self.rng.randint(1, 3)
        for _ in range(parts):
            self.statements(3)
            if self.shared:
                if self.rng.random() < 0.5:
                    self.exchange()
                else:
                    self.uniform_loop()
        for kind in ("int", "uint"):
            for name in self.scopes[0][kind]:
                self.line(f"digest(uint({name}));")
        for name in self.scopes[0]["float"]:
            # The sign of zero is not promised without SignedZeroInfNanPreserve.
            self.line(f"digest(floatBitsToUint({name} == 0.0 ? 0.0 : {name}));")
        for name in self.scopes[0]["ivec3"]:
            self.line(f"digest(uint({name}.x ^ {name}.y * 3 ^ {name}.z * 7));")
        if self.wide:
            for name in self.scopes[0]["int64_t"]:
                self.line(f"digest(uint({name}) ^ uint({name} >> 32) * 3u);")
            for name in self.scopes[0]["int16_t"] + self.scopes[0]["uint8_t"]:
                self.line(f"digest(uint(int({name})));")
            for name in self.scopes[0]["float16_t"] + self.scopes[0]["double"]:
                self.line(f"digest(floatBitsToUint(float({name}) == 0.0 ? 0.0 : float({name})));")
        for name, length in self.arrays:
            self.line(f"for (int i = 0; i < {length}; ++i) digest(uint({name}[i]));")
        if self.subgroups:
            self.line("barrier();")
            self.line("for (int i = 0; i < 4; ++i) digest(gathered[i]);")
        if self.rng.random() < 0.3:
            self.line(f"if ({self.expr('bool')}) return;")
        self.line("sink[me] = total;")
        if self.wide:
            # Behind the words; an odd factor keeps the places of invocations apart.
            odd = self.rng.choice([1, 1, 3, 5, 77])
            self.line(f"sink16[{WORDS}u + (me * {odd}u & {WORDS // 2 - 1}u)] = {self.expr('int16_t')};")
            odd = self.rng.choice([1, 1, 3, 5, 77])
            self.line(f"sink8[{WORDS * 3}u + (me * {odd}u & {WORDS // 2 - 1}u)] = {self.expr('uint8_t')};")
        x, y, z = self.size
        wide = f"""
layout(set = 0, binding = 0) readonly buffer Source64 {{ int64_t source64[]; }};
layout(set = 0, binding = 0) readonly buffer Source16 {{ int16_t source16[]; }};
layout(set = 0, binding = 0) readonly buffer Source8 {{ uint8_t source8[]; }};
layout(set = 0, binding = 1) buffer Sink16 {{ int16_t sink16[]; }};
layout(set = 0, binding = 1) buffer Sink8 {{ uint8_t sink8[]; }};
float16_t small16(float16_t x) {{ return mod(x, float16_t(32.0)); }}
double small64(double x) {{ return mod(x, 1024.0lf); }}
""" if self.wide else ""
        head = f"""#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types : enable
layout(local_size_x = {x}, local_size_y = {y}, local_size_z = {z}) in;
layout(set = 0, binding = 0) readonly buffer Source {{ uint source[]; }};
layout(set = 0, binding = 0) readonly buffer Source4 {{ uvec4 source4[]; }};
layout(set = 0, binding = 1) buffer Sink {{ uint sink[]; }};
shared uint pool[{self.count}];
shared uint tally;
shared uint gathered[4];
uint total = 17u;
uint me = 0u;
int counter = 0;
void digest(uint x) {{ total = (total ^ x) * 16777619u + (total >> 13); }}
float small(float x) {{ return mod(x, 1024.0); }}
int safe_div(int a, int b) {{ return b == 0 || b == -1 ? a : a / b; }}
{wide}"""
        main = ["void main() {",
                f"    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * gl_WorkGroupID.y;",
                f"    me = group * {self.count}u + gl_LocalInvocationIndex;"]
        return head + "\n".join(functions + main + self.lines + ["}"]) + "\n"


def random_shader(seed):
    return Shader(seed).text()

"""Generated C on Cortex-M4F and M7: test vectors under QEMU, flash, stack and instructions per call.

Run: python benchmarks/target.py [--models lugre emps_controller ...] [--optimize=-O2] [--json]
Needs Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm; says which are missing.

flash      text and constants of the generated code alone; with the math library and software floating point in brackets
stack      bytes below the caller's stack pointer after one call, measured on a painted stack, math library included; in
           brackets the frames of the generated code alone, down the deepest chain (-fcallgraph-info=su)
instructions  of one call at a test vector's point, arguments included, counted by QEMU (-icount); the M4F has single
           precision only and computes doubles in software
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import jinja2
from rich.console import Console
from rich.table import Table

from mechsmith.codegen.c_names import Names
from mechsmith.codegen.emit_c import emit_c
from mechsmith.codegen.emit_test import emit_test, make_case
from mechsmith.codegen.lower import lower
from mechsmith.codegen.text import c_number
from mechsmith.codegen.tree import default_discretisation
from mechsmith.codegen.vectors import make_vectors
from mechsmith.symbolic.catalogue import make_model

TOOLS = ("arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm")
MODELS = ("lugre", "emps", "emps_controller", "emps_lugre_closed_loop")
CALLS = 200
STRICT = "-std=c99 -Wall -Wextra -Wconversion -Wdouble-promotion -Werror -ffunction-sections".split()


@dataclass(frozen=True)
class Core:
    name: str
    machine: str
    flags: tuple[str, ...]


CORES = (
    Core("M4F", "mps2-an386", ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")),
    Core("M7", "mps2-an500", ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16")),
)


@dataclass(frozen=True)
class Row:
    model: str
    core: str
    scalar: str
    function: str
    values: int
    off: int
    flash: int
    flash_with_library: int
    stack: int
    frames: int
    instructions: int


START = r"""
extern void _start(void);
extern char stack_top[];
void reset(void);
void reset(void)
{
    *(volatile unsigned *)0xE000ED88u |= 0xFu << 20; /* floating point on */
    __asm volatile("dsb\n isb");
    _start();
}
static void stop(void) { for (;;) { } }
__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, stop, stop, stop, stop, stop
};
"""

# QEMU loads every section where it is used, so that nothing is copied at the start.
LINK = """
MEMORY { code (rx) : ORIGIN = 0, LENGTH = 4M  data (rw) : ORIGIN = 0x20000000, LENGTH = 4M }
ENTRY(reset)
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) KEEP(*(.init)) KEEP(*(.fini)) *(.rodata*) *(.ARM.extab* .eh_frame*) } > code
  .ARM.exidx : { __exidx_start = .; *(.ARM.exidx*) __exidx_end = .; } > code
  .init_array : { __preinit_array_start = .; KEEP(*(.preinit_array)) __preinit_array_end = .;
    __init_array_start = .; KEEP(*(.init_array*)) __init_array_end = .;
    __fini_array_start = .; KEEP(*(.fini_array*)) __fini_array_end = .; } > code
  .data : { *(.data*) } > data
  .bss : { __bss_start__ = .; *(.bss* COMMON) __bss_end__ = .; } > data
  end = ALIGN(8);
  __end__ = end;
  stack_top = 0x20400000;
}
"""

COUNT = jinja2.Template(
    r"""
#include "{{ P }}.h"
#include <stdio.h>
#define LOAD (*(volatile unsigned *)0xE000E014u)
#define NOW (*(volatile unsigned *)0xE000E018u)
#define CONTROL (*(volatile unsigned *)0xE000E010u)
#define WORDS 8192u
#define SPARED 6u /* for the frames of paint and used */
static unsigned stack_pointer(void) { unsigned s; __asm volatile("mov %0, sp" : "=r"(s)); return s; }
static __attribute__((noinline)) void paint(unsigned sp)
{
    for (unsigned i = SPARED; i < WORDS; ++i) {
        ((volatile unsigned *)sp)[-(int)i] = 0xA5A5A5A5u;
    }
}
static __attribute__((noinline)) unsigned used(unsigned sp)
{
    unsigned i = WORDS - 1u;
    while (i > SPARED && ((volatile unsigned *)sp)[-(int)i] == 0xA5A5A5A5u) {
        --i;
    }
    return 4u * i;
}
{% macro numbers(values) %}{ {% for v in values %}{{ number(v) }}, {% endfor %} }{% endmacro %}
int main(void)
{
    LOAD = 0xFFFFFFu;
    NOW = 0u;
    CONTROL = 5u;
    unsigned start = NOW;
    for (volatile int i = 0; i < {{ calls }}; ++i) { }
    const unsigned empty = (start - NOW) & 0xFFFFFFu;
{% for case in cases %}
    {
{% for struct, name, given in case.structs %}
        static const {{ struct }} {{ name }} = { {% for field in given %}{{ numbers(field) if field is iterable else number(field) }}, {% endfor %} };
{% endfor %}
{% if case.vector.function == "step" %}
        {{ x }} x = x0;
{% set call = P ~ "_step(&x" ~ case.call ~ ", " ~ number(case.vector.arguments.dt[0]) ~ ")" %}
{% set again = "x = x0; " %}
{% elif case.struct %}
        {{ case.struct.type }} out;
{% set call = P ~ "_" ~ case.vector.function ~ "(" ~ case.call ~ (", " if case.call else "") ~ "&out)" %}
{% set again = "" %}
{% else %}
        {{ scalar }} out[{{ case.vector.expected | length }}];
{% set call = P ~ "_" ~ case.vector.function ~ "(" ~ case.call ~ (", " if case.call else "") ~ "out)" %}
{% set again = "" %}
{% endif %}
        const unsigned sp = stack_pointer();
        paint(sp);
        start = NOW;
        (void){{ call }};
        const unsigned one = (start - NOW) & 0xFFFFFFu;
        const unsigned depth = used(sp);
        /* long calls one by one: the timer has 24 bits */
        const int calls = (one > 20000u) ? 1 : {{ calls }};
        start = NOW;
        for (volatile int i = 0; i < calls; ++i) { {{ again }}(void){{ call }}; }
        const unsigned ticks = ((start - NOW) & 0xFFFFFFu) - ((calls > 1) ? empty : 0u);
        (void)printf("{{ case.vector.function }} %u %u %d\n", depth, ticks, calls);
    }
{% endfor %}
    return 0;
}
"""
)
# Instructions for a tick of the timer: QEMU takes a nanosecond for each, the boards' clock is 25 MHz.
PER_TICK = 40


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def on_target(core: Core, image: str, folder: Path) -> str:
    emulate = ("qemu-system-arm", "-M", core.machine, "-nographic", "-monitor", "none", "-serial", "none")
    semihosting = ("-semihosting-config", "enable=on,target=native", "-icount", "shift=0")
    return run(*emulate, *semihosting, "-kernel", image, cwd=folder)


def flash(name: str, folder: Path) -> int:
    text = run("arm-none-eabi-size", name, cwd=folder).splitlines()[1].split()
    return int(text[0]) + int(text[1])


def deepest_frames(path: Path) -> dict[str, int]:
    """Return the bytes of stack of each function with those of what it calls, inside one file."""
    text = path.read_text()
    own = {
        name.split(":")[-1]: int(size)
        for name, size in re.findall(r'node: \{ title: "([^"]+)" label: "[^"]*?(\d+) bytes', text)
    }
    calls: dict[str, list[str]] = {}
    for source, target in re.findall(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', text):
        calls.setdefault(source.split(":")[-1], []).append(target.split(":")[-1])

    def depth(name: str) -> int:
        return own.get(name, 0) + max(
            (depth(other) for other in calls.get(name, []) if other in own), default=0
        )

    return {name: depth(name) for name in own}


def measure(name: str, core: Core, scalar: str, optimize: str) -> list[Row]:
    functions = lower(make_model(name))
    discretisation = default_discretisation(functions)
    vectors = make_vectors(functions, discretisation)
    names = Names(functions, scalar, discretisation)
    prefix = names.prefix
    first = {vector.function: vector for vector in reversed(vectors)}
    texts = {
        **emit_c(functions, discretisation=discretisation, scalar=scalar),
        f"{prefix}_test.c": emit_test(functions, vectors, discretisation=discretisation, scalar=scalar),
        "start.c": START,
        "link.ld": LINK,
        "count.c": COUNT.render(
            P=prefix,
            cases=[make_case(names, vector) for vector in first.values()],
            number=lambda value: c_number(value, scalar),
            scalar=scalar,
            x=names.structs["x"].type if "x" in names.structs else "",
            calls=CALLS,
        ),
        "table.c": f'#include "{prefix}.h"\nvoid (*const table[])(void) = {{'
        + ", ".join(f"(void (*)(void)){prefix}_{function}" for function in first)
        + "};\n",
    }
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        for file, text in texts.items():
            (folder / file).write_text(text)
        compiler = ("arm-none-eabi-gcc", *core.flags, optimize)
        library = f"{prefix}.o"
        run(*compiler, *STRICT, "-fcallgraph-info=su", "-c", f"{prefix}.c", "-o", library, cwd=folder)
        frames = deepest_frames(folder / f"{prefix}.ci")
        link = ("--specs=rdimon.specs", "-T", "link.ld", "-Wl,--gc-sections")
        for program in (f"{prefix}_test", "count"):
            run(
                *compiler,
                "start.c",
                f"{program}.c",
                library,
                *link,
                "-lm",
                "-o",
                f"{program}.elf",
                cwd=folder,
            )
        bare = ("-nostartfiles", "-Wl,--gc-sections", "-Wl,-e,table", "--specs=nosys.specs")
        run(*compiler, "table.c", library, *bare, "-lm", "-o", "table.elf", cwd=folder)
        checked = re.search(r"(\d+) values checked, (\d+) off", on_target(core, f"{prefix}_test.elf", folder))
        counted = on_target(core, "count.elf", folder)
        sizes = flash(library, folder), flash("table.elf", folder)
    if checked is None:
        raise SystemExit(f"{name} on {core.name} in {scalar}: the test program did not come to its end")
    rows = []
    for line in counted.splitlines():
        function, depth, ticks, calls = line.split()
        instructions = round(int(ticks) * PER_TICK / int(calls))
        own = frames.get(f"{prefix}_{function}", 0)
        ends = (*sizes, int(depth), own, instructions)
        rows.append(Row(name, core.name, scalar, function, int(checked[1]), int(checked[2]), *ends))
    return rows


def show(rows: list[Row]) -> None:
    table = Table("model", "core", "type", "vectors off", "flash", "function", "stack", "instructions")
    last = ()
    for row in rows:
        head = (row.model, row.core, row.scalar)
        shown = (
            (*head, f"{row.off} of {row.values}", f"{row.flash} ({row.flash_with_library})")
            if head != last
            else ("",) * 5
        )
        table.add_row(*shown, row.function, f"{row.stack} ({row.frames})", str(row.instructions))
        last = head
    Console(width=120).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--optimize", default="-O2")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(
            f"skipped: {', '.join(missing)} not installed (gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm)"
        )
        return 0
    rows = []
    for name in options.models:
        for core in CORES:
            for scalar in ("float", "double"):
                rows += measure(name, core, scalar, options.optimize)
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        show(rows)
    return int(any(row.off for row in rows))


if __name__ == "__main__":
    sys.exit(main())

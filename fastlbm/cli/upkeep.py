"""`fastlbm doctor`, `compile` and `completion`: whether it works, works at once, and is quick to type."""

from __future__ import annotations

import argparse

from .options import Commands, Parser, add_command, add_json
from .printing import complain, print_json

#: Shells that are known.
SHELLS = ("bash", "zsh", "fish")
#: For `complete` of bash, which zsh has as well after bashcompinit.
_BASH = """\
_fastlbm() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words
    case ${{COMP_WORDS[1]}} in
{cases}
        *) words="{commands}" ;;
    esac
    if ((COMP_CWORD == 1)); then words="{commands}"; fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if ((COMP_CWORD > 1)) && [[ $word != -* ]]; then COMPREPLY+=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _fastlbm fastlbm
"""

#: For fish: a line for each command and option.
_FISH = """\
complete -c fastlbm -n __fish_use_subcommand -f
{lines}
"""


def add_commands(commands: Commands[Parser]) -> None:
    doctor = add_command(
        commands,
        "doctor",
        _doctor,
        help="show what is installed and how the core is compiled, and test it",
        description="Show what is installed and how the core is compiled, then check the core's gradient "
        "against central differences. The exit code is 1 if that fails.",
    )
    add_json(doctor)
    compile_ = add_command(
        commands,
        "compile",
        _compile,
        help="compile the core now, so that first calls need not",
        description="Compile the core in several processes and keep it on disk, as when an image is built: "
        "first calls then only load it. What is there already is left as it is.",
    )
    add_json(compile_)
    completion = add_command(
        commands,
        "completion",
        _completion,
        help="print the script that completes commands and options in a shell",
        description='Print the script that completes commands and options. In bash: eval "$(fastlbm '
        'completion bash)"; in zsh the same with zsh; in fish: fastlbm completion fish | source. '
        "Put it into the file that the shell reads first.",
    )
    completion.add_argument("shell", metavar="SHELL", help="The shell is bash, zsh or fish.")


def _doctor(options: argparse.Namespace) -> int:
    passed = True
    found: dict[str, object] = {}
    try:
        from .. import doctor

        for name, value in doctor.facts():
            found[name] = value
            if not options.json:
                print(f"{name:<12} {value}", flush=True)
        for name, error, first, repeated in doctor.self_tests():
            passed &= error < doctor.TOLERANCE  # NaN is no pass
            found[name] = {"gradient_error": error, "first_call": first, "later_call": repeated}
            times = f"first call {first:.2f} s, then {1e6 * repeated:.1f} us"
            if not options.json:
                print(f"{name:<12} gradient off by {error:.1e}, {times}", flush=True)
    except Exception as problem:  # whatever is broken is what the doctor is for
        passed = False
        found["problem"] = f"{type(problem).__name__}: {problem}"
        if not options.json:
            print(f"{'problem':<12} {found['problem']}")
    if options.json:
        print_json({**found, "passed": passed})
    else:
        print(f"{'self-test':<12} {'OK' if passed else 'FAILED'}")
    return 0 if passed else 1


def _compile(options: argparse.Namespace) -> int:
    import subprocess
    import time

    from .. import precompile

    why_not = precompile.why_not()
    if why_not is not None:
        raise ValueError(f"compiled code cannot be kept on disk: {why_not}")
    begin = time.perf_counter()
    if precompile.is_cold():
        complain("compiling in several processes, which takes a minute or two")
    try:
        precompile.compile_all()
    except subprocess.CalledProcessError as error:  # its own words are above
        complain(f"a process that compiles ended with {error.returncode}")
        return 1
    seconds = time.perf_counter() - begin
    if options.json:
        print_json({"seconds": seconds})
    else:
        print(f"compiled, or there before: {seconds:.1f} s")
    return 0


def _completion(options: argparse.Namespace) -> int:
    if options.shell not in SHELLS:
        raise ValueError(f"SHELL must be one of {', '.join(SHELLS)}, got {options.shell!r}")
    if options.shell == "fish":
        print(fish_script(options.parser), end="")
        return 0
    start = "autoload -U +X bashcompinit && bashcompinit\n" if options.shell == "zsh" else ""
    print(start + completion_script(options.parser), end="")
    return 0


def _commands(parser: Parser) -> dict[str, Parser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def fish_script(parser: Parser) -> str:
    """The script for fish, in which every option has its first sentence."""
    lines = []
    for name, command in _commands(parser).items():
        words = (command.description or "").partition(".")[0]
        lines.append(f"complete -c fastlbm -n __fish_use_subcommand -a {name} -d {_quoted(words)}")
        here = f"complete -c fastlbm -n '__fish_seen_subcommand_from {name}'"
        if name == "completion":
            lines.append(f"{here} -f -a '{' '.join(SHELLS)}'")
        for action in command._actions:
            if action.option_strings:
                long = action.option_strings[-1].removeprefix("--")
                value = "" if action.nargs == 0 else " -r"
                told = (action.help or "").partition(". ")[0].removesuffix(".")
                lines.append(f"{here} -l {long}{value} -d {_quoted(told)}")
    return _FISH.format(lines="\n".join(lines))


def _quoted(text: str) -> str:
    """A text for fish, in one pair of quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def completion_script(parser: Parser) -> str:
    """The script for bash and zsh: the commands of the parser, and the options of each."""
    commands = _commands(parser)
    cases = []
    for name, command in commands.items():
        options = [word for action in command._actions for word in action.option_strings]
        values = f"{' '.join(SHELLS)} " if name == "completion" else ""
        cases.append(f'        {name}) words="{values}{" ".join(options)}" ;;')
    return _BASH.format(cases="\n".join(cases), commands=" ".join(commands))

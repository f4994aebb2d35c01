// The steps of each mode: what a row of the trace, a line of code and the sentence above say.

function slotsOf(program, step, text, names) {
    const slots = { y: text(step.node) };
    step.args.forEach((arg, place) => { slots[`a${place}`] = text(arg); });
    return { ...slots, ...names };
}

// The steps of a mode: each knows its node, and is written out when it is shown.
function stepsOf(program, mode, run) {
    const write = { value: valueStep, forward: forwardStep, reverse: reverseStep }[mode];
    const nodes = [...program.names.keys()].filter((node) => !isConstant(program, node));
    const about = mode === "reverse" ? run.sweep.events : nodes;
    return about.map((each) => {
        const node = mode === "reverse" ? each.node : each;
        return { node, event: each, written: () => write(program, run, each) };
    });
}

function valueTexts(program, run, node) {
    const { values } = run, name = coded(program.names[node]);
    if (isInput(program, node)) return { formula: "", numbers: "", code: `const ${name} = ${values[node]};` };
    const step = program.step(node), record = program.data.operations[step.operation];
    return {
        formula: filled(record.formula, slotsOf(program, step, (k) => pretty(program.names[k]))),
        numbers: filled(record.formula, slotsOf(program, step, (k) => inserted(values[k]))),
        code: `const ${name} = ${replaced(record.code, slotsOf(program, step, (k) => codeName(program, k)))};`,
    };
}

function codeName(program, node) {
    return isConstant(program, node) ? String(program.numbers[node - program.inputs]) : coded(program.names[node]);
}

function valueStep(program, run, node) {
    const texts = valueTexts(program, run, node), value = run.values[node];
    return {
        node, arrows: isOperation(program, node) ? program.step(node).args.map((arg, place) => [arg, node, place, ""]) : [],
        name: pretty(program.names[node]), value: shown(value), notes: warnings(program, node, run.values), ...texts,
    };
}

function forwardStep(program, run, node) {
    const { values, forward } = run, name = program.names[node], dot = pretty(name, DOT), value = forward.dots[node];
    const base = { node, name: dot, value: shown(value), notes: warnings(program, node, values), arrows: [] };
    if (isInput(program, node)) {
        const seeded = node === run.seed;
        return { ...base, formula: seeded ? "the seed" : "", numbers: "", code: `const ${coded(name, "_dot")} = ${value};` };
    }
    const step = program.step(node), record = program.data.operations[step.operation];
    const parts = forward.parts.get(node);
    const written = (text, tangent) => joined(parts.map(({ place, arg }) =>
        filled(record.slopes[place][0], slotsOf(program, step, text, { t: tangent(arg) }))));
    const code = parts.map(({ place, arg }) =>
        replaced(record.slopes[place][1], slotsOf(program, step, (k) => codeName(program, k), { t: coded(program.names[arg], "_dot") })));
    return {
        ...base,
        arrows: parts.map(({ place, arg, part }) => [arg, node, place, shown(part, 4)]),
        formula: parts.length ? written((k) => pretty(program.names[k]), (arg) => pretty(program.names[arg], DOT)) : "0",
        numbers: parts.length ? written((k) => inserted(values[k]), (arg) => inserted(forward.dots[arg])) : "",
        code: `const ${coded(name, "_dot")} = ${code.join(" + ").replaceAll("+ -", "- ") || "0.0"};`,
        closed: closedAt(program, step, values),
    };
}

function closedAt(program, step, values) {
    return step.args.filter((arg, place) => program.active[arg] && !taken(step, place, values))
        .map((arg) => pretty(program.names[arg]));
}

function reverseStep(program, run, event) {
    const { values } = run, name = program.names[event.node], bar = pretty(name, BAR), barCode = coded(name, "_bar");
    if (event.seed) {
        return {
            node: event.node, name: bar, formula: "the seed", numbers: "", value: "1", notes: [], arrows: [],
            event, code: `let ${barCode} = 1.0;`,
        };
    }
    const step = program.step(event.user), record = program.data.operations[step.operation];
    const [text, code] = record.slopes[event.place], user = program.names[event.user];
    const upper = pretty(user, BAR), number = inserted(run.sweep.bars.get(event.user));
    const added = filled(text, slotsOf(program, step, (k) => pretty(program.names[k]), { t: upper }));
    const numbers = filled(text, slotsOf(program, step, (k) => inserted(values[k]), { t: number }));
    const line = replaced(code, slotsOf(program, step, (k) => codeName(program, k), { t: coded(user, "_bar") }));
    return {
        node: event.node, user: event.user, event, name: bar,
        formula: (event.before === null ? "" : `${bar} + `) + times(added, upper),
        numbers: (event.before === null ? "" : `${inserted(event.before)} + `) + times(numbers, number),
        value: shown(event.total), adds: event.before !== null,
        notes: event.alive ? warnings(program, event.user, values)
            : [["not taken", "the branch is not taken: its contribution is exactly 0"]],
        arrows: [[event.node, event.user, event.place, shown(event.part, 4)]],
        code: event.before === null ? `let ${barCode} = ${line};` : `${barCode} += ${line};`,
    };
}

function sentence(program, mode, run, step) {
    const [name, label] = [pretty(program.names[step.node]), program.data.outputs[run.output][0]];
    const parts = [];
    const equation = [step.name, step.formula, step.numbers, step.value].filter((text, k, all) => text !== "" && text !== all[k - 1]);
    const text = equation.join(" = ").replace(" = ", step.adds ? " ← " : " = ");
    if (mode === "value") parts.push(isInput(program, step.node) ? `${name} = ${step.value}, an input.` : `${text}.`);
    if (mode === "forward") {
        const by = pretty(program.names[run.seed]);
        if (isInput(program, step.node))
            parts.push(step.node === run.seed ? `${step.name} = 1: the derivatives below are by ${by}.` : `${step.name} = 0: ${name} is held fixed.`);
        else parts.push(`${text}: how ${name} changes with ${by}.`);
        if (step.closed?.length) parts.push(`The branch of ${step.closed.join(", ")} is not taken and adds exactly 0.`);
    }
    if (mode === "reverse") {
        if (step.event.seed) parts.push(`${step.name} = ∂${label}/∂${name} = 1: the sweep begins at the output.`);
        else {
            const uses = program.users[step.node].filter(([user]) => run.sweep.bars.has(user)).length;
            parts.push(`${text}.`);
            if (uses > 1) parts.push(`${name} is used ${uses} times; the contributions of its uses add up.`);
        }
    }
    return parts.join(" ");
}

// The computation: values, tangents and cotangents of a graph of numbers, by the functions that
// difflab printed (OPERATIONS). Nothing here knows a derivative rule.

function makeProgram(data) {
    const inputs = data.inputs.length, constants = data.constants.length;
    const names = data.inputs.map(([name]) => name);
    data.constants.forEach(([name]) => names.push(name));
    const steps = [], users = names.map(() => []), active = names.map((_, k) => k < inputs);
    let node = inputs + constants, count = 0;
    for (let k = 0; k < data.steps.length; node++) {
        const operation = data.steps[k], size = data.operations[operation].slopes.length;
        const args = data.steps.slice(k + 1, k + 1 + size).map((back) => node - back);
        k += 1 + size;
        steps.push({ node, operation, args, compute: OPERATIONS[operation].value });
        names.push(data.names[node] ?? `v${++count}`);
        users.push([]);
        active.push(args.some((arg, place) => active[arg] && OPERATIONS[operation].slopes[place] !== null));
        args.forEach((arg, place) => users[arg].push([node, place]));
    }
    const size = node;
    const numbers = data.constants.map(([, value]) => Number(String(value).replace("inf", "Infinity")));
    const step = (k) => steps[k - inputs - constants];
    return { data, inputs, constants, steps, step, names, users, active, size, numbers };
}

const isInput = (program, node) => node < program.inputs;
const isConstant = (program, node) => node >= program.inputs && node < program.inputs + program.constants;
const isOperation = (program, node) => node >= program.inputs + program.constants;

function evaluate(program, point) {
    const values = [...point, ...program.numbers];
    for (const { compute, args } of program.steps)
        values.push(Number(compute(0, 0, values[args[0]], values[args[1]], values[args[2]])));
    return values;
}

function argumentsOf(step, values) {
    return [values[step.node], ...step.args.map((arg) => values[arg])];
}

// Whether an operation passes an argument on: false in a branch that is not taken.
function taken(step, place, values) {
    const condition = OPERATIONS[step.operation].taken[place];
    return condition === null || Boolean(condition(0, ...argumentsOf(step, values)));
}

// t times the slope by one argument, exactly zero in a branch that is not taken; null without one.
function slope(step, place, t, values) {
    const rule = OPERATIONS[step.operation].slopes[place];
    if (rule === null) return null;
    return taken(step, place, values) ? rule(t, ...argumentsOf(step, values)) : 0;
}

function tangents(program, values, seed) {
    const dots = values.map((_, node) => Number(node === seed));
    const moving = values.map((_, node) => node === seed);
    const parts = new Map();
    for (const step of program.steps) {
        const terms = [];
        step.args.forEach((arg, place) => {
            if (!moving[arg]) return;
            const part = slope(step, place, dots[arg], values);
            if (part !== null) terms.push({ place, arg, part });
        });
        moving[step.node] = terms.length > 0;
        dots[step.node] = terms.reduce((sum, { part }) => sum + part, 0);
        parts.set(step.node, terms);
    }
    return { dots, moving, parts };
}

// The reverse sweep as a list of contributions; each has the sum of those before it.
function cotangents(program, values, output) {
    const bars = new Map([[output, 1]]), live = new Map([[output, true]]);
    const events = [{ node: output, seed: true, part: 1, before: null, total: 1 }];
    for (let k = program.steps.length - 1; k >= 0; k--) {
        const step = program.steps[k];
        if (!bars.has(step.node) || !program.active[step.node]) continue;
        step.args.forEach((arg, place) => {
            if (!program.active[arg]) return;
            const contribution = slope(step, place, bars.get(step.node), values);
            if (contribution === null) return;
            const alive = live.get(step.node) && taken(step, place, values);
            const part = alive ? contribution : 0, before = bars.has(arg) ? bars.get(arg) : null;
            bars.set(arg, before === null ? part : before + part);
            live.set(arg, alive || (live.get(arg) ?? false));
            events.push({ node: arg, user: step.node, place, part, before, total: bars.get(arg), alive });
        });
    }
    return { bars, events };
}

// Paths from an input to an output with the product of the slopes on each; at most `limit`, and
// none that is too long to read. A path with a slope of zero, as in a branch that is not taken, is
// only counted.
const LONGEST_PATH = 40, TRIED = 5000;

function pathsBetween(program, values, input, output, limit) {
    const factorOf = (step, place) => slope(step, place, 1, values) ?? 0;
    const count = new Array(program.size).fill(0), nonzero = [...count];
    count[output] = nonzero[output] = 1;
    for (let k = program.steps.length - 1; k >= 0; k--) {
        const step = program.steps[k];
        step.args.forEach((arg, place) => {
            if (OPERATIONS[step.operation].slopes[place] !== null) count[arg] += count[step.node];
            if (factorOf(step, place) !== 0) nonzero[arg] += nonzero[step.node];
        });
    }
    const paths = [], pending = [{ nodes: [input], factors: [] }];
    for (let tried = 0; pending.length && paths.length < limit && tried < TRIED; tried++) {
        const { nodes, factors } = pending.pop(), end = nodes.at(-1);
        if (nodes.length > LONGEST_PATH) continue;
        if (end === output) {
            paths.push({ nodes, factors, product: factors.reduce((a, b) => a * b, 1) });
        }
        for (const [user, place] of [...program.users[end]].reverse()) {
            const step = program.step(user);
            const factor = factorOf(step, place);
            if (nonzero[user] && factor !== 0) pending.push({ nodes: [...nodes, user], factors: [...factors, factor] });
        }
    }
    return { total: count[input], nonzero: nonzero[input], paths };
}

// Difference quotients by one input at a step h, of one output.
function quotients(program, point, input, output, h) {
    const at = (x) => evaluate(program, point.map((value, k) => (k === input ? x : value)))[output];
    const x = point[input], [low, middle, high] = [at(x - h), at(x), at(x + h)];
    return { central: (high - low) / (2 * h), onesided: (high - middle) / h };
}

// What a reader must know about a step at this point: a kink, lost digits, an undefined value.
function warnings(program, node, values) {
    if (!isOperation(program, node)) return [];
    const step = program.step(node), record = program.data.operations[step.operation];
    const value = values[node], alerts = [], operands = step.args.map((arg) => values[arg]);
    const finite = operands.every(Number.isFinite);
    if (!Number.isFinite(value) && finite)
        alerts.push([shown(value), record.needs ? `undefined or infinite here: ${record.name} needs ${record.needs}` : "overflow"]);
    const kink = OPERATIONS[step.operation].kink;
    const itself = step.args.length > 1 && step.args.every((arg) => arg === step.args[0]); // x != x
    if (kink !== null && !itself && step.args.some((arg) => program.active[arg])) {
        const distance = kink(0, ...argumentsOf(step, values)), scale = Math.max(1, ...operands.map(Math.abs));
        if (distance === 0) alerts.push(["kink", `a kink of ${record.name}: ${record.kink}`]);
        else if (distance < 1e-6 * scale) alerts.push(["near kink", `a kink of ${record.name} is ${shown(distance, 2)} away`]);
    }
    if ((record.name === "add" || record.name === "subtract") && finite) {
        const lost = Math.log10(Math.max(...operands.map(Math.abs)) / Math.abs(value));
        if (value === 0 && operands[0] !== 0) alerts.push(["all digits", "the operands are equal: what their rounding lost does not come back"]);
        else if (lost >= 3 && Number.isFinite(lost))
            alerts.push([`−${Math.floor(lost)} digits`, `cancellation: ${Math.floor(lost)} of 16 digits are lost`]);
    }
    return alerts;
}

// The state of the page in its address: #mode=reverse&step=3&seed=x1&at=2,5&h=-5

const MODES = ["value", "forward", "reverse"];

function readAddress(program) {
    const given = new URLSearchParams(location.hash.slice(1));
    const state = { mode: "value", step: null, seed: 0, output: 0, h: -5, point: program.data.inputs.map(([, value]) => value) };
    if (MODES.includes(given.get("mode"))) state.mode = given.get("mode");
    const number = (name) => given.has(name) && Number.isFinite(Number(given.get(name))) ? Number(given.get(name)) : null;
    if (number("step") !== null) state.step = Math.max(0, Math.round(number("step")) - 1);
    if (number("h") !== null) state.h = Math.min(LARGEST, Math.max(LEAST, number("h")));
    state.seed = Math.max(0, program.data.inputs.findIndex(([name]) => name === given.get("seed")));
    state.output = Math.max(0, program.data.outputs.findIndex(([name]) => name === given.get("of")));
    (given.get("at") ?? "").split(",").forEach((text, k) => {
        if (text !== "" && k < state.point.length && Number.isFinite(Number(text))) state.point[k] = Number(text);
    });
    return state;
}

function writeAddress(program, state) {
    const parts = { mode: state.mode, step: state.step + 1 };
    if (state.seed) parts.seed = program.data.inputs[state.seed][0];
    if (state.output) parts.of = program.data.outputs[state.output][0];
    if (state.point.some((value, k) => value !== program.data.inputs[k][1])) parts.at = state.point.join(",");
    if (state.h !== -5) parts.h = state.h;
    const hash = "#" + Object.entries(parts).map(([key, value]) => `${key}=${encodeURIComponent(value).replaceAll("%2C", ",")}`).join("&");
    try {
        if (location.hash !== hash) history.replaceState(null, "", hash);
    } catch {  // inside a sandboxed frame the address is not ours
    }
}

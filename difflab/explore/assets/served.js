// On a server: the verdicts, as the methods are judged.

async function receiveVerdicts() {
    const asked = new URLSearchParams(location.search);
    const answer = await fetch(`/rows?${asked}`), reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const verdicts = program.data.verdicts;
    for (let rest = "", part = await reader.read(); !part.done; part = await reader.read()) {
        const received = (rest + part.value).split("\n");
        rest = received.pop();
        for (const line of received) {
            const message = JSON.parse(line);
            if (message.whole) program.data.verdicts = message.whole;
            else if (message.refused || message.stopped) verdicts.sentence = message.refused ?? `difflab: ${message.stopped}`;
            else verdicts.rows.push(message);
            showVerdicts(find("verdicts"), program, state.point);
        }
    }
}

if (program.data.verdicts) receiveVerdicts();

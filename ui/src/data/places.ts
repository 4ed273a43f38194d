/** Errors of definitions as text: `flows/c.yaml:2:1: ORK101 …`. */

export interface PlacedError {
  file: string | null;
  line: number | null;
  column: number | null;
  code: string | null;
  message: string;
}

/** One error, as `ork validate --format concise` writes it. Other text is the message alone. */
export function placedError(text: string): PlacedError {
  const [, file, line, column, code, message] = /^(?:([^:\n]+):(?:(\d+):(?:(\d+):)?)? )?(?:(ORK\d{3}) )?(.*)$/s.exec(text) ?? [];
  // A colon in a sentence does not make a file.
  if (file && (line === undefined || /\s/.test(file)) && code === undefined) return { file: null, line: null, column: null, code: null, message: text };
  return { file: file ?? null, line: line ? Number(line) : null, column: column ? Number(column) : null, code: code ?? null, message: message ?? text };
}

/** The errors of a parser's output, one in a line; null if it is other text, such as a traceback. */
export function placedErrors(output: string): PlacedError[] | null {
  const found = output.split("\n").filter((line) => line.trim() !== "").map(placedError);
  return found.length > 0 && found.every((each) => each.code !== null) ? found : null;
}

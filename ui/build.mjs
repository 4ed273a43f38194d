// Builds the pages into src/ork/ui/static (or the folder given as argument).
// The same sources give the same bytes: names are stable, nothing depends on the folder or the time.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const SOURCES = join(HERE, "src");
const TARGET = resolve(process.argv[2] ?? join(HERE, "..", "src", "ork", "ui", "static"));
/** All pages as one classic script, for `ork ui export FILE.html`. It is not served, and no page loads it. */
const ONE_FILE = "snapshot.js";
/** Unpacks that script in such a file. */
const LOADER = "loader.js";
const OPTIONS = {
  absWorkingDir: HERE,
  bundle: true,
  minify: true,
  target: ["chrome123", "firefox121", "safari17.5"],
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  write: false,
};
const BUNDLED = ["preact", "@preact/signals", "@preact/signals-core"];

/** Pages and dialogs all import the same base, so that esbuild puts it into one shared file instead of one for each set of pages. */
const shareBaseOfPages = {
  name: "share-base-of-pages",
  setup(setup) {
    setup.onLoad({ filter: /[\\/]src[\\/](pages|dialogs)[\\/][\w-]+\.tsx$/ }, async ({ path }) => ({
      contents: `import "../base.ts";\n${await readFile(path, "utf8")}`,
      loader: "tsx",
    }));
  },
};

const files = (await readdir(SOURCES, { recursive: true, withFileTypes: true }))
  .filter((each) => each.isFile())
  .map((each) => relative(SOURCES, join(each.parentPath ?? each.path, each.name)).split(sep).join("/"))
  .sort();

const outputs = await bundle();
outputs.set(ONE_FILE, await oneFile());
for (const name of ["index.html", "theme.js", "icon.svg", LOADER]) outputs.set(name, await readFile(join(SOURCES, "static", name)));
const manifest = await describe(outputs);
await rm(TARGET, { recursive: true, force: true });
await mkdir(TARGET, { recursive: true });
for (const [name, bytes] of outputs) await writeFile(join(TARGET, name), bytes);
await writeFile(join(TARGET, "build.json"), JSON.stringify(manifest, null, 1) + "\n");
report(manifest);

/** Every page, worker and stylesheet; code that several of them use is in shared files. */
async function bundle() {
  const result = await build({
    ...OPTIONS,
    entryPoints: {
      app: "src/main.tsx",
      ...named(files.filter((name) => /^(pages|dialogs)\/[\w-]+\.tsx$/.test(name))),
      ...named(files.filter((name) => name.endsWith(".worker.ts"))),
    },
    splitting: true,
    format: "esm",
    entryNames: "[name]",
    chunkNames: "chunk-[hash]",
    outdir: "out",
    metafile: true,
    plugins: [shareBaseOfPages],
  });
  const renamed = stableNames(result.metafile);
  const found = new Map();
  for (const file of result.outputFiles) {
    const name = file.path.slice(file.path.lastIndexOf(sep) + 1);
    found.set(renamed.get(name) ?? name, name.endsWith(".js") ? rename(file.text, renamed) : file.contents);
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** pages/run.tsx → run, dialogs/run.tsx → dialog-run, log/scan.worker.ts → scan-worker. */
function named(paths) {
  return Object.fromEntries(paths.map((path) => [path.replace(/^dialogs\//, "dialog-").split("/").at(-1).replace(/\.(worker\.)?tsx?$/, (end) => (end.startsWith(".worker") ? "-worker" : "")), `src/${path}`]));
}

/** chunk-HASH.js → base.js, shared-1.js …, in the order of their first source file. */
function stableNames(metafile) {
  const chunks = Object.entries(metafile.outputs)
    .map(([path, output]) => ({ name: path.split("/").at(-1), inputs: Object.keys(output.inputs).sort() }))
    .filter((chunk) => /^chunk-\w+\.js$/.test(chunk.name))
    .sort((a, b) => (a.inputs.join() < b.inputs.join() ? -1 : 1));
  let number = 0;
  return new Map(chunks.map((chunk) => [chunk.name, chunk.inputs.includes("src/words.ts") ? "base.js" : `shared-${++number}.js`]));
}

function rename(text, names) {
  for (const [from, to] of names) text = text.replaceAll(from, to);
  return Buffer.from(text);
}

async function describe(outputs) {
  const entries = [...outputs].map(([name, bytes]) => [
    name,
    { sha256: sha256(bytes), bytes: bytes.length, gz: gzipSync(bytes, { level: 9 }).length },
  ]);
  const licences = await Promise.all(BUNDLED.map(licence));
  return {
    build: sha256(entries.map(([name, entry]) => `${name} ${entry.sha256}\n`).join("")).slice(0, 12),
    sources: await hashOfSources(),
    first: firstRoute(outputs),
    outputs: Object.fromEntries(entries),
    licences,
  };
}

/** The scripts that the browser loads for the home page: the entry, what it imports, and the page. */
function firstRoute(outputs) {
  const wanted = new Set(["theme.js"]);
  const add = (name) => {
    if (wanted.has(name) || !outputs.has(name)) return;
    wanted.add(name);
    for (const [, next] of outputs.get(name).toString().matchAll(/(?:from|import)\s*"\.\/([\w-]+\.js)"/g)) add(next);
  };
  add("app.js");
  add("home.js");
  return [...wanted].sort();
}

/** Pages and workers in one script. The texts of workers are inside, because a page from a disk can load no other file. */
async function oneFile() {
  const texts = {};
  for (const path of files.filter((name) => name.endsWith(".worker.ts"))) {
    const built = await build({ ...OPTIONS, entryPoints: [`src/${path}`], format: "iife" });
    texts[Object.keys(named([path]))[0].replace(/-worker$/, "")] = built.outputFiles[0].text;
  }
  const withWorkers = {
    name: "with-workers",
    setup(setup) {
      setup.onLoad({ filter: /[\\/]src[\\/]data[\\/]worker-texts\.ts$/ }, () => ({ contents: `export const WORKER_TEXTS = ${JSON.stringify(texts)};`, loader: "js" }));
    },
  };
  const result = await build({ ...OPTIONS, entryPoints: ["src/file.ts"], format: "iife", outdir: "out", define: { "import.meta.url": '""' }, plugins: [withWorkers] });
  const text = result.outputFiles.find((file) => file.path.endsWith(".js")).text;
  // It becomes the content of a script element, which these would end or change.
  if (/<\/script|<!--/i.test(text)) throw new Error("the script cannot be part of a page");
  return Buffer.from(text);
}

/** As tests/architecture/test_ui_build.py computes it. */
async function hashOfSources() {
  const hash = createHash("sha256");
  for (const name of [...files.map((each) => `src/${each}`), "package-lock.json", "build.mjs"].sort()) {
    hash.update(`${name}\0${sha256(await readFile(join(HERE, name)))}\n`);
  }
  return hash.digest("hex");
}

async function licence(name) {
  const folder = join(HERE, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const text = await readFile(join(folder, "LICENSE"), "utf8");
  return { name, version, license, text: text.replaceAll("\r\n", "\n") };
}

function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

function report({ build, outputs, first }) {
  const sum = (names) => names.reduce((total, name) => total + outputs[name].gz, 0);
  const scripts = Object.keys(outputs).filter((name) => name.endsWith(".js") && name !== ONE_FILE && name !== LOADER);
  const kb = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;
  console.log(`build ${build}: first page ${kb(sum(first))}, all scripts ${kb(sum(scripts))}, styles ${kb(outputs["app.css"].gz)}, one file ${kb(outputs[ONE_FILE].gz)} (gz)`);
}

/** A form for the params of a run, each by its type. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type FormField, textOf } from "../data/params.ts";
import { Field, Select, TextArea, TextField } from "./form.tsx";

interface ParamFormProps {
  fields: readonly FormField[];
  texts: Readonly<Record<string, string>>;
  errors: Readonly<Record<string, string>>;
  onInput: (name: string, text: string) => void;
  /** The first field has the focus when its dialog opens. */
  isFirst?: boolean;
}

export function ParamForm({ fields, texts, errors, onInput, isFirst = false }: ParamFormProps): JSX.Element {
  const form = useRef<HTMLDivElement>(null);
  // Before the dialog around it opens, which looks for this attribute.
  useEffect(() => { if (isFirst) form.current?.querySelector("input, select, textarea")?.setAttribute("autofocus", ""); }, []);
  return (
    <div class="param-form" ref={form}>
      {fields.map((field) => (
        <ParamInput
          key={field.name}
          field={field}
          value={Object.hasOwn(texts, field.name) ? (texts[field.name] ?? "") : textOf(field, field.default)}
          error={Object.hasOwn(errors, field.name) ? errors[field.name] : undefined}
          onInput={(text) => onInput(field.name, text)}
        />
      ))}
    </div>
  );
}

const NUMERIC = { int: "numeric", float: "decimal" } as const;

function ParamInput({ field, value, error, onInput }: { field: FormField; value: string; error: string | undefined; onInput: (text: string) => void }): JSX.Element {
  const shared = { label: field.required ? `${field.name} *` : field.name, hint: <Hint field={field} />, error: error ?? null, value };
  if (field.sensitive) return <TextField {...shared} type="password" autocomplete="new-password" onInput={onInput} />;
  switch (field.control) {
    case "bool": return <Select {...shared} onChange={onInput} options={[...(value === "" || field.may_be_null ? [["", field.required ? "choose" : "none"] as const] : []), ["true", "true"], ["false", "false"]]} />;
    case "choice": return <Select {...shared} onChange={onInput} options={choices(field, value)} />;
    case "json": return <TextArea {...shared} onInput={onInput} rows={Math.min(8, 1 + value.split("\n").length)} placeholder={field.type === "any" ? "JSON or text" : "JSON"} />;
    case "date": return <TextField {...shared} type="date" onInput={onInput} />;
    case "datetime":
      return <Field {...shared}>{(given) => <input {...given} type="datetime-local" step={1} value={value} onInput={(event) => onInput(event.currentTarget.value)} />}</Field>;
    case "int": case "float": {
      const mode = NUMERIC[field.control];
      return <Field {...shared}>{(given) => <input {...given} inputMode={mode} value={value} autocomplete="off" onInput={(event) => onInput(event.currentTarget.value)} />}</Field>;
    }
    default: return <TextField {...shared} onInput={onInput} />;
  }
}

function choices(field: FormField, value: string): (readonly [string, string])[] {
  const options = (field.choices ?? []).map((each) => [JSON.stringify(each), String(each)] as const);
  if (field.may_be_null || !field.required || value === "") return value === "" || field.may_be_null ? [["", field.required && !field.may_be_null ? "choose" : "none"], ...options] : options;
  return options;
}

function Hint({ field }: { field: FormField }): JSX.Element {
  const zone = field.control === "datetime" ? (field.zone === "Z" ? ", in UTC" : ", without a time zone") : "";
  return <><code>{field.type}</code>{zone}{field.required ? ", required" : ""}{field.sensitive ? ", stored encrypted and never shown" : ""}{field.description ? ` · ${field.description}` : ""}</>;
}

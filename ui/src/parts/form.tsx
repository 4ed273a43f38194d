/** Form controls with their labels, hints and errors. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useRef, useState } from "preact/hooks";

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | null;
  /** Only for screen readers, where a placeholder or the place says it. */
  hideLabel?: boolean;
}

type Labelled = { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined };

/** Any control: `<Field label="Name">{(given) => <input {...given} />}</Field>`. */
export function Field({ label, hint, error, hideLabel = false, children }: FieldProps & { children: (given: Labelled) => JSX.Element }): JSX.Element {
  const id = useId();
  const described = [hint ? `${id}-hint` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id} class={hideLabel ? "only-read" : undefined}>{label}</label>
      {children({ id, "aria-describedby": described || undefined, "aria-invalid": error ? true : undefined })}
      {hint && <span class="field-hint" id={`${id}-hint`}>{hint}</span>}
      {error && <span class="field-error" id={`${id}-error`}>{error}</span>}
    </div>
  );
}

interface TextFieldProps extends FieldProps {
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "password" | "search" | "number" | "date" | "datetime-local";
  placeholder?: string;
  autocomplete?: string;
  required?: boolean;
  mono?: boolean;
}

export function TextField({ value, onInput, type = "text", placeholder, autocomplete = "off", required, mono, ...field }: TextFieldProps): JSX.Element {
  return (
    <Field {...field}>
      {(given) => (
        <input
          {...given}
          class={mono ? "mono" : undefined}
          type={type as "text"}
          value={value}
          placeholder={placeholder}
          autocomplete={autocomplete}
          spellcheck={false}
          required={required}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function TextArea({ value, onInput, rows = 4, placeholder, ...field }: FieldProps & { value: string; onInput: (value: string) => void; rows?: number; placeholder?: string }): JSX.Element {
  return (
    <Field {...field}>
      {(given) => <textarea {...given} rows={rows} value={value} placeholder={placeholder} spellcheck={false} onInput={(event) => onInput(event.currentTarget.value)} />}
    </Field>
  );
}

interface SelectProps extends FieldProps {
  value: string;
  options: readonly (readonly [value: string, label: string])[];
  onChange: (value: string) => void;
}

export function Select({ value, options, onChange, ...field }: SelectProps): JSX.Element {
  return (
    <Field {...field}>
      {(given) => (
        <select {...given} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map(([key, label]) => <option value={key} key={key}>{label}</option>)}
        </select>
      )}
    </Field>
  );
}

export function Checkbox({ label, checked, onChange }: { label: string; checked: boolean; onChange: (checked: boolean) => void }): JSX.Element {
  return (
    <label class="checkbox">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}

/** A few choices beside each other, one of which holds: states to filter by, views of a page. */
export function Choice({ label, value, options, onChange }: { label: string; value: string; options: readonly (readonly [value: string, label: ComponentChildren])[]; onChange: (value: string) => void }): JSX.Element {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([key, text]) => (
        <button type="button" key={key} aria-pressed={key === value} onClick={() => onChange(key)}>{text}</button>
      ))}
    </div>
  );
}

/** The field above a list; `/` goes to it. */
export function Search({ value, onInput, placeholder, label }: { value: string; onInput: (value: string) => void; placeholder: string; label: string }): JSX.Element {
  return (
    <input
      class="search"
      type="search"
      data-filter
      value={value}
      placeholder={placeholder}
      aria-label={label}
      autocomplete="off"
      spellcheck={false}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}

/** A text that begins as `given`, and follows it when it changes. Not by an effect, which could undo what was typed meanwhile. */
export function useDraft(given: string): [string, (text: string) => void] {
  const [text, setText] = useState(given);
  const followed = useRef(given);
  if (followed.current !== given) {
    followed.current = given;
    setText(given);
  }
  return [text, setText];
}

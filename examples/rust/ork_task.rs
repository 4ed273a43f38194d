//! Reads a task's input and writes its output: all that a Rust program needs of Ork. Copy it beside your own files.

#![allow(dead_code)]

use std::{env, fs, io};

/// The whole input, a JSON text.
pub fn input() -> io::Result<String> {
    match env::var("ORK_INPUT_FILE") {
        Ok(path) => fs::read_to_string(path),
        Err(_) => io::read_to_string(io::stdin()),
    }
}

/// What the task returns: any JSON text.
pub fn output(json: &str) -> io::Result<()> {
    match env::var("ORK_OUTPUT_FILE") {
        Ok(path) => fs::write(path, json),
        Err(_) => {
            println!("{json}");
            Ok(())
        }
    }
}

/// A text as JSON, with its quotes.
pub fn quote(text: &str) -> String {
    let mut json = String::from('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", c as u32)),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// The text of a member of the input, or the input itself if it is a text; None if there is no such thing.
/// For more than that, take a JSON crate.
pub fn text(json: &str, member: &str) -> Option<String> {
    let json = json.trim();
    let start = if json.starts_with('"') {
        0
    } else {
        let key = json.find(&quote(member))? + quote(member).len();
        let rest = json[key..].trim_start().strip_prefix(':')?;
        json.len() - rest.trim_start().len()
    };
    unquote(&json[start..])
}

fn unquote(json: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = json.strip_prefix('"')?.chars();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => match rest.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                'u' => text.push(unit(&mut rest)?),
                other => text.push(other),
            },
            c => text.push(c),
        }
    }
}

/// The character of `XXXX`, or of `XXXX\uXXXX` where it takes two.
fn unit(rest: &mut std::str::Chars) -> Option<char> {
    let first = four(rest)?;
    if !(0xD800..0xDC00).contains(&first) {
        return char::from_u32(first);
    }
    if rest.next()? != '\\' || rest.next()? != 'u' {
        return None;
    }
    let second = four(rest)?.checked_sub(0xDC00)?;
    char::from_u32(0x10000 + ((first - 0xD800) << 10) + second)
}

fn four(rest: &mut std::str::Chars) -> Option<u32> {
    let digits: String = rest.by_ref().take(4).collect();
    u32::from_str_radix(&digits, 16).ok()
}

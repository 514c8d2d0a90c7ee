//! The words reviewers use for severities, verdicts and columns. `docs/rules/answers.md` has the same tables, and a
//! test compares them.
//!
//! A word that is in no table is never guessed: a severity is unknown, and an approval with such a word beside it is
//! unclear.

use super::draft::FindingField;
use super::text::is_emoji;
use crate::model::{Severity, Verdict};

/// Severities in other words, in lower case. They count where a severity is expected: in its column, behind its
/// label, in brackets, and in a heading over several findings.
pub const SEVERITIES: [(&str, Severity); 60] = [
    ("critical", Severity::Critical),
    ("crit", Severity::Critical),
    ("blocker", Severity::Critical),
    ("blocking", Severity::Critical),
    ("fatal", Severity::Critical),
    ("severe", Severity::Critical),
    ("high", Severity::Critical),
    ("kritisch", Severity::Critical),
    ("hoch", Severity::Critical),
    ("critique", Severity::Critical),
    ("élevé", Severity::Critical),
    ("élevée", Severity::Critical),
    ("crítico", Severity::Critical),
    ("crítica", Severity::Critical),
    ("critico", Severity::Critical),
    ("alto", Severity::Critical),
    ("alta", Severity::Critical),
    ("严重", Severity::Critical),
    ("致命", Severity::Critical),
    ("高", Severity::Critical),
    ("重大", Severity::Critical),
    ("warning", Severity::Warning),
    ("warn", Severity::Warning),
    ("major", Severity::Warning),
    ("medium", Severity::Warning),
    ("moderate", Severity::Warning),
    ("important", Severity::Warning),
    ("warnung", Severity::Warning),
    ("mittel", Severity::Warning),
    ("avertissement", Severity::Warning),
    ("moyen", Severity::Warning),
    ("moyenne", Severity::Warning),
    ("advertencia", Severity::Warning),
    ("medio", Severity::Warning),
    ("media", Severity::Warning),
    ("médio", Severity::Warning),
    ("média", Severity::Warning),
    ("aviso", Severity::Warning),
    ("警告", Severity::Warning),
    ("中", Severity::Warning),
    ("info", Severity::Info),
    ("informational", Severity::Info),
    ("information", Severity::Info),
    ("minor", Severity::Info),
    ("low", Severity::Info),
    ("nit", Severity::Info),
    ("nitpick", Severity::Info),
    ("trivial", Severity::Info),
    ("suggestion", Severity::Info),
    ("note", Severity::Info),
    ("hinweis", Severity::Info),
    ("niedrig", Severity::Info),
    ("gering", Severity::Info),
    ("faible", Severity::Info),
    ("bajo", Severity::Info),
    ("baja", Severity::Info),
    ("baixo", Severity::Info),
    ("basso", Severity::Info),
    ("低", Severity::Info),
    ("提示", Severity::Info),
];

/// Those that also open a finding by themselves, as `[HIGH] …` or `**Minor:** …` do. The others are words of prose.
const OPENERS: [&str; 13] = [
    "critical", "crit", "blocker", "high", "warning", "warn", "major", "medium", "info", "minor", "low",
    "nit", "nitpick",
];

/// Those that head other sections of a review more often than findings.
const PROSE: [&str; 3] = ["note", "information", "suggestion"];

/// Verdicts in other words, in lower case, with a space for `_` and `-`.
pub const VERDICTS: [(&str, Verdict); 62] = [
    ("approved", Verdict::Approved),
    ("approve", Verdict::Approved),
    ("review approved", Verdict::Approved),
    ("accepted", Verdict::Approved),
    ("accept", Verdict::Approved),
    ("all good", Verdict::Approved),
    ("lgtm", Verdict::Approved),
    ("looks good", Verdict::Approved),
    ("looks good to me", Verdict::Approved),
    ("good to go", Verdict::Approved),
    ("good to merge", Verdict::Approved),
    ("ready to merge", Verdict::Approved),
    ("ship it", Verdict::Approved),
    ("pass", Verdict::Approved),
    ("passed", Verdict::Approved),
    ("review passed", Verdict::Approved),
    ("audit passed", Verdict::Approved),
    ("clean", Verdict::Approved),
    ("no issues", Verdict::Approved),
    ("no issues found", Verdict::Approved),
    ("genehmigt", Verdict::Approved),
    ("freigegeben", Verdict::Approved),
    ("angenommen", Verdict::Approved),
    ("approuvé", Verdict::Approved),
    ("accepté", Verdict::Approved),
    ("aprobado", Verdict::Approved),
    ("aprovado", Verdict::Approved),
    ("approvato", Verdict::Approved),
    ("通过", Verdict::Approved),
    ("批准", Verdict::Approved),
    ("承認", Verdict::Approved),
    ("rejected", Verdict::Rejected),
    ("reject", Verdict::Rejected),
    ("request changes", Verdict::Rejected),
    ("requests changes", Verdict::Rejected),
    ("requesting changes", Verdict::Rejected),
    ("changes requested", Verdict::Rejected),
    ("changes required", Verdict::Rejected),
    ("changes needed", Verdict::Rejected),
    ("needs changes", Verdict::Rejected),
    ("needs work", Verdict::Rejected),
    ("needs fixes", Verdict::Rejected),
    ("needs revision", Verdict::Rejected),
    ("needs improvement", Verdict::Rejected),
    ("not approved", Verdict::Rejected),
    ("not ready", Verdict::Rejected),
    ("do not merge", Verdict::Rejected),
    ("declined", Verdict::Rejected),
    ("blocked", Verdict::Rejected),
    ("fail", Verdict::Rejected),
    ("failed", Verdict::Rejected),
    ("issues found", Verdict::Rejected),
    ("issues", Verdict::Rejected),
    ("abgelehnt", Verdict::Rejected),
    ("zurückgewiesen", Verdict::Rejected),
    ("rejeté", Verdict::Rejected),
    ("refusé", Verdict::Rejected),
    ("rechazado", Verdict::Rejected),
    ("rejeitado", Verdict::Rejected),
    ("respinto", Verdict::Rejected),
    ("拒绝", Verdict::Rejected),
    ("不通过", Verdict::Rejected),
];

/// What may be beside an approval without making it unclear: where it leads, and that nothing stands against it.
pub const BESIDE_APPROVAL: [&str; 40] = [
    "for merge",
    "for merging",
    "for release",
    "for deployment",
    "for production",
    "for production deployment",
    "for completion",
    "to merge",
    "ready for merge",
    "ready for production",
    "ready for deployment",
    "production ready",
    "no findings",
    "no blockers",
    "no blocking issues",
    "no blocking findings",
    "no critical issues",
    "no critical issues found",
    "no security issues",
    "no security issues found",
    "no changes needed",
    "no changes required",
    "no changes requested",
    "non blocking",
    "with comments",
    "with notes",
    "with suggestions",
    "with minor comments",
    "with minor notes",
    "with minor suggestions",
    "with minor observations",
    "with non blocking comments",
    "with non blocking notes",
    "with non blocking suggestions",
    "with non blocking observations",
    "with non blocking concerns",
    "well done",
    "great work",
    "lets go",
    "lets fucking go",
];

/// Words that take a verdict back.
pub const TAKEN_BACK: [&str; 8] = [
    "withdrawn",
    "revoked",
    "retracted",
    "rescinded",
    "superseded",
    "overturned",
    "taken back",
    "no longer valid",
];

/// What takes an approval back in prose, further down; `…` are up to three words.
pub const WITHDRAWALS: [&str; 35] = [
    "take my approval back",
    "take the approval back",
    "take back my approval",
    "take back the approval",
    "taking back my approval",
    "withdraw my approval",
    "withdraw the approval",
    "withdrawing my approval",
    "revoke my approval",
    "revoke the approval",
    "revoking my approval",
    "retract my approval",
    "retract the approval",
    "retracting my approval",
    "rescind my approval",
    "rescind the approval",
    "approval withdrawn",
    "approval is withdrawn",
    "approval revoked",
    "approval is revoked",
    "approval retracted",
    "approval rescinded",
    "no longer approve",
    "not approved after all",
    "rejected after all",
    "i reject",
    "nehme meine zustimmung zurück",
    "nehme meine freigabe zurück",
    "nehme die zustimmung zurück",
    "nehme die freigabe zurück",
    "ziehe meine zustimmung zurück",
    "ziehe meine freigabe zurück",
    "ziehe die freigabe zurück",
    "doch nicht freigegeben",
    "ich lehne … ab",
];

/// Words before them that turn them round.
pub const NO_WITHDRAWAL: [&str; 13] = [
    "no", "not", "nothing", "never", "would", "could", "might", "should", "whether", "kein", "keinen",
    "nicht", "würde",
];

/// Sentences that do the same.
pub const REJECTED_AFTER_ALL: [&str; 3] = ["abgelehnt", "doch abgelehnt", "actually reject"];

/// In capitals, alone in a sentence or behind its colon.
pub const REJECTED_ALONE: [&str; 3] = ["REJECTED", "REJECT", "ABGELEHNT"];

/// Labels of a line that is the verdict, whatever is behind them.
pub const VERDICT_LABELS: [&str; 16] = [
    "verdict",
    "final verdict",
    "overall verdict",
    "review verdict",
    "audit verdict",
    "decision",
    "final decision",
    "review decision",
    "urteil",
    "entscheidung",
    "décision",
    "veredicto",
    "decisión",
    "verdetto",
    "判定",
    "結論",
];

/// Labels of a line that may be the verdict, at the head of a review or under a heading about all of it.
pub const SUMMARY_LABELS: [&str; 14] = [
    "status",
    "review status",
    "audit status",
    "overall",
    "overall status",
    "overall assessment",
    "assessment",
    "result",
    "review result",
    "outcome",
    "recommendation",
    "conclusion",
    "ergebnis",
    "结论",
];

/// Columns, keys and labels in other languages, beside the English ones.
pub(crate) const COLUMNS: [(&str, FindingField); 58] = [
    ("ort", FindingField::Location),
    ("datei", FindingField::Location),
    ("stelle", FindingField::Location),
    ("fundort", FindingField::Location),
    ("emplacement", FindingField::Location),
    ("fichier", FindingField::Location),
    ("ubicación", FindingField::Location),
    ("archivo", FindingField::Location),
    ("localização", FindingField::Location),
    ("arquivo", FindingField::Location),
    ("posizione", FindingField::Location),
    ("位置", FindingField::Location),
    ("文件", FindingField::Location),
    ("場所", FindingField::Location),
    ("ファイル", FindingField::Location),
    ("zeile", FindingField::Line),
    ("ligne", FindingField::Line),
    ("línea", FindingField::Line),
    ("linha", FindingField::Line),
    ("riga", FindingField::Line),
    ("行", FindingField::Line),
    ("schweregrad", FindingField::Severity),
    ("schwere", FindingField::Severity),
    ("gravité", FindingField::Severity),
    ("sévérité", FindingField::Severity),
    ("gravedad", FindingField::Severity),
    ("severidad", FindingField::Severity),
    ("gravidade", FindingField::Severity),
    ("severidade", FindingField::Severity),
    ("gravità", FindingField::Severity),
    ("严重程度", FindingField::Severity),
    ("严重性", FindingField::Severity),
    ("重要度", FindingField::Severity),
    ("kategorie", FindingField::Category),
    ("catégorie", FindingField::Category),
    ("categoría", FindingField::Category),
    ("categoria", FindingField::Category),
    ("类别", FindingField::Category),
    ("カテゴリ", FindingField::Category),
    ("beschreibung", FindingField::Description),
    ("problème", FindingField::Description),
    ("descripción", FindingField::Description),
    ("problema", FindingField::Description),
    ("descrição", FindingField::Description),
    ("descrizione", FindingField::Description),
    ("问题", FindingField::Description),
    ("描述", FindingField::Description),
    ("说明", FindingField::Description),
    ("説明", FindingField::Description),
    ("behebung", FindingField::Fix),
    ("lösung", FindingField::Fix),
    ("correction", FindingField::Fix),
    ("corrección", FindingField::Fix),
    ("correção", FindingField::Fix),
    ("correzione", FindingField::Fix),
    ("修复", FindingField::Fix),
    ("建议修复", FindingField::Fix),
    ("beleg", FindingField::Evidence),
];

/// The severity of a word in lower case.
pub(crate) fn severity(word: &str) -> Option<Severity> {
    SEVERITIES.iter().find(|(name, _)| *name == word).map(|(_, severity)| *severity)
}

/// The severity of a word in any case. Nearly all words are longer than the longest of these.
pub(crate) fn severity_of(word: &str) -> Option<Severity> {
    if word.is_empty() || word.len() > 13 {
        return None;
    }
    if word.is_ascii() {
        if !may_be(word, &SEVERITY_LETTERS) {
            return None;
        }
        return SEVERITIES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(word))
            .map(|(_, severity)| *severity);
    }
    severity(&word.to_lowercase())
}

/// The first letters of the severities of each length, a bit each. Nearly all words of a text have others.
static SEVERITY_LETTERS: [u32; 16] = {
    let mut letters = [0; 16];
    let mut at = 0;
    while at < SEVERITIES.len() {
        letters[SEVERITIES[at].0.len()] |= letter_bit(SEVERITIES[at].0.as_bytes()[0]);
        at += 1;
    }
    letters
};

/// Whether a word in ASCII has the length and the first letter of one of those. A no is certain.
fn may_be(word: &str, letters: &[u32; 16]) -> bool {
    let first = word.bytes().next().map_or(0, letter_bit);
    letters.get(word.len()).is_some_and(|letters| letters & first != 0)
}

/// The same bit for a letter in both cases. Other bytes may have it too.
pub(super) const fn letter_bit(letter: u8) -> u32 {
    1 << (letter & 31)
}

/// The bits of the first letters of these phrases.
pub(super) const fn first_letters(phrases: &[&str]) -> u32 {
    let (mut bits, mut at) = (0, 0);
    while at < phrases.len() {
        bits |= letter_bit(phrases[at].as_bytes()[0]);
        at += 1;
    }
    bits
}

/// Whether a severity in this word opens a finding by itself.
pub(crate) fn opens(word: &str) -> bool {
    const FIRST: u32 = first_letters(&OPENERS);
    let may_open = word.bytes().next().is_some_and(|first| letter_bit(first) & FIRST != 0);
    may_open && OPENERS.iter().any(|opener| opener.eq_ignore_ascii_case(word))
}

/// Whether a heading that begins with this word is about something else.
pub(crate) fn is_prose(word: &str) -> bool {
    PROSE.iter().any(|prose| prose.eq_ignore_ascii_case(word))
}

pub(crate) fn column(name: &str) -> Option<FindingField> {
    COLUMNS.iter().find(|(column, _)| *column == name).map(|(_, field)| *field)
}

/// The columns of the table with the field each one is.
pub fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    COLUMNS.iter().map(|(name, field)| (*name, field.name()))
}

/// A phrase as the tables have it: lower case, one space between words, without markup, symbols and apostrophes.
pub(crate) fn key(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    if text.is_ascii() {
        for byte in text.bytes() {
            match byte {
                b' ' | b'\t'..=b'\r' | b'_' | b'-' => {
                    if !key.is_empty() && !key.ends_with(' ') {
                        key.push(' ');
                    }
                }
                b'*' | b'`' | b'\'' | b'"' => {}
                other => key.push(char::from(other.to_ascii_lowercase())),
            }
        }
        key.truncate(key.trim_end().len());
        return key;
    }
    for c in text.chars() {
        if c.is_whitespace() || matches!(c, '_' | '-') {
            if !key.is_empty() && !key.ends_with(' ') {
                key.push(' ');
            }
        } else if !(is_emoji(c) || matches!(c, '*' | '`' | '\'' | '’' | '"' | '“' | '”')) {
            key.extend(c.to_lowercase());
        }
    }
    key.truncate(key.trim_end().len());
    key
}

/// The verdict a phrase begins with, how it is written in the table, and what is left of the phrase.
pub(crate) fn verdict(phrase: &str) -> Option<(Verdict, &'static str, &str)> {
    let fits = |name: &str| {
        phrase.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(' ')).map(str::trim_start)
    };
    let fitting = VERDICTS.iter().filter_map(|(name, verdict)| Some((*verdict, *name, fits(name)?)));
    fitting.max_by_key(|(_, name, _)| name.len())
}

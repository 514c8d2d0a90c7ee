//! Letters of other alphabets in plain ones, for names that are typed: German umlauts as German spells them out, marks
//! left out, Greek and Cyrillic letter by letter. Other scripts are not known here.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The text in ASCII letters as far as they are known; anything unknown stays as it is.
pub(super) fn plain_letters(text: &str) -> impl Iterator<Item = char> {
    // Composed first: a letter and its mark may come as two characters.
    text.nfc().flat_map(|letter| plain(letter).chars().collect::<Vec<char>>())
}

fn plain(letter: char) -> String {
    if letter.is_ascii() {
        return letter.to_string();
    }
    if let Some(spelled) = spelled(letter) {
        return spelled.to_owned();
    }
    let bare: String = [letter].into_iter().nfkd().filter(|part| !is_combining_mark(*part)).collect();
    // A letter with a mark that is in the table without it, as in Greek.
    bare.chars().map(|part| spelled(part).map_or_else(|| part.to_string(), str::to_owned)).collect()
}

fn spelled(letter: char) -> Option<&'static str> {
    let small = letter.to_lowercase().next().unwrap_or(letter);
    SPELLED.iter().find(|(known, _)| *known == small).map(|(_, spelled)| *spelled)
}

#[rustfmt::skip]
const SPELLED: &[(char, &str)] = &[
    ('ä', "ae"), ('ö', "oe"), ('ü', "ue"), ('ß', "ss"), ('æ', "ae"), ('œ', "oe"), ('ø', "oe"), ('å', "aa"),
    ('đ', "d"), ('ð', "d"), ('þ', "th"), ('ł', "l"), ('ħ', "h"), ('ı', "i"), ('ŋ', "ng"), ('ŧ', "t"), ('ə', "e"),
    ('α', "a"), ('β', "v"), ('γ', "g"), ('δ', "d"), ('ε', "e"), ('ζ', "z"), ('η', "i"), ('θ', "th"), ('ι', "i"),
    ('κ', "k"), ('λ', "l"), ('μ', "m"), ('ν', "n"), ('ξ', "x"), ('ο', "o"), ('π', "p"), ('ρ', "r"), ('σ', "s"),
    ('ς', "s"), ('τ', "t"), ('υ', "y"), ('φ', "f"), ('χ', "ch"), ('ψ', "ps"), ('ω', "o"),
    ('а', "a"), ('б', "b"), ('в', "v"), ('г', "g"), ('ґ', "g"), ('д', "d"), ('е', "e"), ('ё', "yo"), ('є', "ye"),
    ('ж', "zh"), ('з', "z"), ('и', "i"), ('й', "y"), ('і', "i"), ('ї', "yi"), ('к', "k"), ('л', "l"), ('м', "m"),
    ('н', "n"), ('о', "o"), ('п', "p"), ('р', "r"), ('с', "s"), ('т', "t"), ('у', "u"), ('ў', "u"), ('ф', "f"),
    ('х', "kh"), ('ц', "ts"), ('ч', "ch"), ('ш', "sh"), ('щ', "shch"), ('ъ', ""), ('ы', "y"), ('ь', ""), ('э', "e"),
    ('ю', "yu"), ('я', "ya"), ('ђ', "dj"), ('ј', "j"), ('љ', "lj"), ('њ', "nj"), ('ћ', "c"), ('џ', "dz"),
];

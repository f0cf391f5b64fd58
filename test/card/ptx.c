#include "card/ptx.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATEMENT_ROOM = 1 << 14, WORDS = 512, DEPTH = 16 };

// Registers that one declaration makes: of a name alone, or name0 to name(count - 1).
typedef struct {
    char name[64];
    int count, row, bytes; // count -1: no range
} registers;

typedef struct {
    const char *at, *end;
    int line, begins; // lines: where we are, where the statement began
    char statement[STATEMENT_ROOM];
    char *word[WORDS];
    int words;
    module *m;
    function *f; // NULL outside
    registers *registers;
    int register_count;
    symbol *locals; // of the function and its blocks
    int local_count;
    int depth;
    struct {
        int registers, locals;
    } scope[DEPTH];
    struct {
        char *name;
        int at;
    } * labels;
    int label_count;
    int64_t module_shared; // bytes of static shared memory that all functions have
} reader;

__attribute__((noreturn, format(printf, 2, 3))) static void fail(const reader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "card: PTX line %d, in %s: ", r->begins, r->f ? r->f->name : "the module");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}

// Room for one more element of a list that grows by doubling.
#define MORE(list, count)                                                                                              \
    (((count) & ((count)-1)) == 0 ? (list = realloc(list, sizeof *(list) * (size_t)((count) ? 2 * (count) : 1)))       \
                                  : (list),                                                                            \
        &(list)[(count)++])

// Statements: up to a semicolon, a label's colon, or a brace that begins or ends a block.

static void skip_space(reader *r) {
    while (r->at < r->end) {
        if (r->at + 1 < r->end && r->at[0] == '/' && r->at[1] == '/') {
            while (r->at < r->end && *r->at != '\n') r->at++;
        } else if (isspace((unsigned char)*r->at) || *r->at == '\0') {
            r->line += *r->at++ == '\n';
        } else {
            return;
        }
    }
}

static bool ends_statement(const reader *r, size_t n, int braces) {
    char c = *r->at;
    if (braces) return false;
    if (c == ';' || (c == ':' && r->at[1] != ':' && (n == 0 || r->statement[n - 1] != ':'))) return true;
    if (n == 0) return c == '{' || c == '}';
    return c == '{' && r->f == NULL && !strchr(r->statement, '='); // a function's body
}

// Puts the next statement into r->statement without its end, which is returned; 0 at the end of the text.
static char read_statement(reader *r) {
    size_t n = 0;
    int braces = 0;
    skip_space(r);
    r->begins = r->line;
    r->statement[0] = '\0';
    for (; r->at < r->end; r->at++) {
        if (r->at[0] == '/' && r->at + 1 < r->end && r->at[1] == '/') {
            skip_space(r);
            if (r->at >= r->end) break;
        }
        if (ends_statement(r, n, braces)) return *r->at++;
        char c = *r->at;
        r->line += c == '\n';
        braces += (c == '{') - (c == '}');
        if (n + 2 >= STATEMENT_ROOM) fail(r, "a statement is too long");
        r->statement[n++] = isspace((unsigned char)c) ? ' ' : c;
        r->statement[n] = '\0';
        // A function's head, and directives that have no semicolon.
        if (c == '\n' && r->statement[0] == '.' && !r->f) {
            static const char *const lines[] = {".version", ".target", ".address_size", ".file"};
            for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
                if (strncmp(r->statement, lines[i], strlen(lines[i])) == 0) return r->at++, ';';
        }
        if (c == '\n' && (strncmp(r->statement, ".loc", 4) == 0 || strncmp(r->statement, ".pragma", 7) == 0) &&
            strncmp(r->statement, ".local", 6) != 0)
            return r->at++, ';';
    }
    return n ? ';' : 0;
}

// Splits the statement into words: names, numbers, and punctuation alone.
static void split(reader *r) {
    static char room[2 * STATEMENT_ROOM];
    char *to = room;
    r->words = 0;
    for (const char *s = r->statement; *s;) {
        if (*s == ' ' || *s == ',') {
            s++;
            continue;
        }
        if (r->words == WORDS) fail(r, "a statement has too many words");
        r->word[r->words++] = to;
        if (strchr("{}[]()|=", *s)) {
            *to++ = *s++;
        } else {
            if (*s == '+' || *s == '@' || *s == '!') *to++ = *s++; // an offset, a guard
            while (*s && !strchr(" ,{}[]()|=+", *s)) *to++ = *s++;
        }
        *to++ = '\0';
    }
}

// Names

static bool find_register(const reader *r, const char *name, int *row, int *bytes) {
    size_t stem = strlen(name);
    while (stem > 0 && isdigit((unsigned char)name[stem - 1])) stem--;
    for (int i = r->register_count - 1; i >= 0; i--) {
        const registers *g = &r->registers[i];
        int number = 0;
        if (g->count < 0) {
            if (strcmp(g->name, name) != 0) continue;
        } else {
            if (!name[stem] || strlen(g->name) != stem || strncmp(g->name, name, stem) != 0) continue;
            number = atoi(name + stem);
            if (number >= g->count) continue;
        }
        *row = g->row + number * (g->bytes == 8 ? 2 : 1);
        *bytes = g->bytes;
        return true;
    }
    return false;
}

static const symbol *find_symbol(const reader *r, const char *name) {
    for (int i = r->local_count - 1; i >= 0; i--)
        if (strcmp(r->locals[i].name, name) == 0) return &r->locals[i];
    return ptx_symbol(r->m, name);
}

static int constant_row(reader *r, uint64_t value, int bytes) {
    function *f = r->f;
    for (int i = f->constant_count - 1; i >= 0 && i >= f->constant_count - 64; i--)
        if (f->constants[i].value == value && f->constants[i].bytes == bytes) return f->constants[i].row;
    *MORE(f->constants, f->constant_count) = (constant){f->rows, bytes, value};
    f->rows += bytes == 8 ? 2 : 1;
    return f->constants[f->constant_count - 1].row;
}

static bool find_special(reader *r, const char *name, int *row) {
    static const char *const names[SPECIALS] = {"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z",
        "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid"};
    function *f = r->f;
    for (int which = 0; which < SPECIALS; which++) {
        if (strcmp(name, names[which]) != 0) continue;
        for (int i = 0; i < f->special_count; i++)
            if (f->special[i].which == which) return *row = f->special[i].row, true;
        f->special[f->special_count++] = (struct special){ *row = f->rows++, which};
        return true;
    }
    return false;
}

static bool read_number(const char *s, uint64_t *value) {
    char *end;
    if (s[0] == '0' && (s[1] == 'f' || s[1] == 'F' || s[1] == 'd' || s[1] == 'D')) {
        *value = strtoull(s + 2, &end, 16);
    } else if (isdigit((unsigned char)s[0])) {
        *value = strtoull(s, &end, 0);
    } else if (s[0] == '-' || s[0] == '+') {
        *value = (uint64_t)strtoll(s, &end, 0);
    } else {
        return false;
    }
    return *end == '\0' || strcmp(end, "U") == 0;
}

// An operand becomes a row of registers. `width`: w, d or p, for numbers.
static int operand_row(reader *r, const char *word, char width, int *bytes) {
    int row;
    uint64_t value;
    *bytes = width == 'd' ? 8 : 4;
    if (find_register(r, word, &row, bytes) || find_special(r, word, &row)) return row;
    if (strcmp(word, "_") == 0 || strcmp(word, "%temp") == 0) return r->f->rows++;
    if (read_number(word, &value)) return constant_row(r, width == 'p' && value ? UINT32_MAX : value, *bytes);
    const symbol *s = find_symbol(r, word);
    if (s) return constant_row(r, (uint64_t)s->at, *bytes);
    fail(r, "%s is not known", word);
}

// Declarations

static int bytes_of_type(const char *type) {
    static const char *const names[] = {
        "pred", "b8", "u8", "s8", "b16", "u16", "s16", "f16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"};
    static const int bytes[] = {0, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8};
    if (*type == '.') type++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type, names[i]) == 0) return bytes[i];
    return -1;
}

static void declare_registers(reader *r) {
    int bytes = bytes_of_type(r->word[1]);
    if (bytes < 0) fail(r, "%s is no type of a register", r->word[1]);
    for (int i = 2; i < r->words; i++) {
        registers *g = MORE(r->registers, r->register_count);
        char *range = strchr(r->word[i], '<');
        *g = (registers){.count = range ? atoi(range + 1) : -1, .row = r->f->rows, .bytes = bytes};
        snprintf(g->name, sizeof g->name, "%.*s", range ? (int)(range - r->word[i]) : 63, r->word[i]);
        r->f->rows += (range ? g->count : 1) * (bytes == 8 ? 2 : 1);
    }
}

// A variable's words: .space ... .type name [ bytes ] or name[bytes]; the alignment is known from .align.
typedef struct {
    const char *name;
    int64_t bytes, align;
    int values; // the word after =, 0: none
} variable;

static variable read_variable(reader *r, int first) {
    variable v = {NULL, 1, 1, 0};
    int64_t element = 1;
    for (int i = first; i < r->words; i++) {
        const char *word = r->word[i];
        if (strcmp(word, ".ptr") == 0) { // what follows is said of what it points to
            while (r->word[i + 1][0] == '.' && strcmp(r->word[i + 1], ".align") != 0) i++;
            if (strcmp(r->word[i + 1], ".align") == 0) i += 2;
        } else if (strcmp(word, ".align") == 0) {
            v.align = atoi(r->word[++i]);
        } else if (word[0] == '.' && bytes_of_type(word) > 0) {
            element = bytes_of_type(word);
            if (v.align < element) v.align = element;
        } else if (word[0] == '[') {
            v.bytes = i + 1 < r->words && r->word[i + 1][0] != ']' ? atoll(r->word[i + 1]) : 0;
            i += v.bytes ? 2 : 1;
        } else if (word[0] == '=') {
            v.values = i + 1;
            break;
        } else if (word[0] != '.') {
            v.name = word;
        }
    }
    if (!v.name) fail(r, "a variable has no name");
    v.bytes *= element;
    return v;
}

static int64_t place(int64_t *at, int64_t bytes, int64_t align) {
    int64_t begin = (*at + align - 1) / align * align;
    *at = begin + bytes;
    return begin;
}

static symbol *add_symbol(reader *r, const char *name, int space, int64_t at, int64_t bytes) {
    symbol *s = r->f ? MORE(r->locals, r->local_count) : MORE(r->m->symbols, r->m->symbol_count);
    *s = (symbol){strdup(name), space, at, bytes};
    return s;
}

static void declare_global(reader *r, const variable *v) {
    char *memory = aligned_alloc(64, ((size_t)v->bytes + 63) / 64 * 64);
    int64_t element = 1;
    memset(memory, 0, ((size_t)v->bytes + 63) / 64 * 64);
    for (int i = 0; i < r->words; i++)
        if (r->word[i][0] == '.' && bytes_of_type(r->word[i]) > 0) element = bytes_of_type(r->word[i]);
    for (int i = v->values, n = 0; v->values && i < r->words; i++) {
        uint64_t value;
        if (strchr("{}", r->word[i][0])) continue;
        if (!read_number(r->word[i], &value)) fail(r, "%s is no number", r->word[i]);
        memcpy(memory + n++ * element, &value, (size_t)element);
    }
    add_symbol(r, v->name, SPACE_GLOBAL, (int64_t)(uintptr_t)memory, v->bytes);
}

// A module's own variables come first, then those of one function.
static void declare_shared(reader *r, const variable *v, bool external) {
    int64_t *end = r->f ? &r->f->shared_bytes : &r->module_shared;
    add_symbol(r, v->name, SPACE_SHARED, external ? SHARED_DYNAMIC : place(end, v->bytes, v->align), v->bytes);
    if (*end > SHARED_DYNAMIC) fail(r, "too much static shared memory");
}

static void declare_variable(reader *r) {
    bool external = false;
    int first = 0;
    while (strcmp(r->word[first], ".extern") == 0 || strcmp(r->word[first], ".visible") == 0 ||
           strcmp(r->word[first], ".weak") == 0)
        external |= strcmp(r->word[first++], ".extern") == 0;
    const char *where = r->word[first];
    variable v = read_variable(r, first + 1);
    if (strcmp(where, ".shared") == 0) {
        declare_shared(r, &v, external);
    } else if (strcmp(where, ".local") == 0) {
        add_symbol(r, v.name, SPACE_LOCAL, place(&r->f->local_bytes, v.bytes, v.align), v.bytes);
    } else if (strcmp(where, ".param") == 0) {
        add_symbol(r, v.name, SPACE_LANE_PARAM, place(&r->f->lane_bytes, v.bytes, v.align), v.bytes);
    } else if (strcmp(where, ".global") == 0 || strcmp(where, ".const") == 0) {
        declare_global(r, &v);
    } else {
        fail(r, "%s is not known", where);
    }
}

// Operands of an instruction, from a word on: their words without punctuation.
static int collect(const reader *r, int first, const char *operand[OPERANDS * 2]) {
    int n = 0;
    for (int i = first; i < r->words; i++) {
        if (strchr("{}|", r->word[i][0])) continue;
        if (n == OPERANDS * 2) fail(r, "too many operands");
        operand[n++] = r->word[i];
    }
    return n;
}

static void put_operand(reader *r, insn *i, int at, const char *word, char width) {
    if (at >= OPERANDS) fail(r, "too many operands");
    if (word[0] == '!') {
        i->is_not = true;
        word++;
    }
    i->op[at] = operand_row(r, word, width, &i->bytes[at]);
}

// [ base +offset ] from operand n on; the next operand's number. The base is operand `at` of the instruction, or -1.
static int read_address(reader *r, insn *i, const char *const *word, int n, int at) {
    const symbol *s;
    int row, bytes;
    if (strcmp(word[n], "[") != 0) fail(r, "an address is wanted, not %s", word[n]);
    i->op[at] = -1;
    i->imm = 0;
    if (find_register(r, word[n + 1], &row, &bytes)) {
        i->op[at] = row;
        i->bytes[at] = bytes;
    } else if ((s = find_symbol(r, word[n + 1])) != NULL) {
        i->imm = s->at;
        if (i->space == SPACE_PARAM) i->space = s->space;
    } else {
        fail(r, "%s is no address", word[n + 1]);
    }
    n += 2;
    if (word[n][0] == '+' || word[n][0] == '-') i->imm += atoll(word[n] + (word[n][1] == '-')), n++;
    if (strcmp(word[n], "]") != 0) fail(r, "an address does not end");
    return n + 1;
}

// Parts of an operation's name, behind dots.
typedef struct {
    char room[96];
    char *part[12];
    int count;
} name_parts;

static void cut_name(name_parts *p, const char *name) {
    p->count = 0;
    snprintf(p->room, sizeof p->room, "%s", name);
    for (char *s = strtok(p->room, "."); s && p->count < 12; s = strtok(NULL, ".")) p->part[p->count++] = s;
}

static bool has_part(const name_parts *p, const char *part) {
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->part[i], part) == 0) return true;
    return false;
}

static int space_of(const name_parts *p, const function *f) {
    if (has_part(p, "global")) return SPACE_GLOBAL;
    if (has_part(p, "shared")) return SPACE_SHARED;
    if (has_part(p, "local")) return SPACE_LOCAL;
    if (has_part(p, "param")) return f->entry ? SPACE_PARAM : SPACE_LANE_PARAM;
    return SPACE_GENERIC;
}

// ld, st and atom

static void read_memory(reader *r, insn *i, const name_parts *p, int first) {
    const char *word[OPERANDS * 2], *type = p->part[p->count - 1];
    int n = 0, count = collect(r, first, word);
    bool load = strcmp(p->part[0], "ld") == 0;
    char width = bytes_of_type(type) == 8 ? 'd' : 'w';
    i->size = bytes_of_type(type);
    if (i->size <= 0) fail(r, "%s is no type", type);
    i->is_signed = type[0] == 's';
    i->space = space_of(p, r->f);
    i->count = has_part(p, "v4") ? 4 : has_part(p, "v2") ? 2 : 1;
    i->kind = load && has_part(p, "volatile") ? POLL : PLAIN;
    if (load)
        for (; n < i->count; n++) put_operand(r, i, n, word[n], width);
    n = read_address(r, i, word, n, load ? i->count : 0);
    if (!load)
        for (int k = 0; k < i->count; k++) put_operand(r, i, k + 1, word[n++], width);
    if (n != count) fail(r, "%s has other operands", i->name);
    i->run = load ? lanes_load : lanes_store;
}

static void read_atom(reader *r, insn *i, const name_parts *p, int first) {
    const char *word[OPERANDS * 2];
    const lanes_row *row = lanes_find(strcmp(p->part[p->count - 1], "u64") == 0 ? "atom.add.u64" : "atom.add.u32");
    collect(r, first, word);
    if (!has_part(p, "add") || p->part[p->count - 1][0] != 'u') fail(r, "%s is not known", i->name);
    i->space = space_of(p, r->f);
    i->size = bytes_of_type(p->part[p->count - 1]);
    i->count = 1;
    put_operand(r, i, 0, word[0], 'w');
    int n = read_address(r, i, word, 1, 1);
    put_operand(r, i, 2, word[n], i->size == 8 ? 'd' : 'w');
    i->run = row->run;
}

// cp.async.cg.shared.global [to], [from], bytes, bytes
static void read_copy(reader *r, insn *i, int first) {
    const char *word[OPERANDS * 2];
    int count = collect(r, first, word);
    int n = read_address(r, i, word, 0, 0);
    i->target = (int)i->imm;
    n = read_address(r, i, word, n, 1);
    put_operand(r, i, 2, word[n], 'w');
    put_operand(r, i, 3, n + 1 < count ? word[n + 1] : word[n], 'w');
    i->run = lanes_copy;
}

// mov between a register and its parts.
static bool read_pack(reader *r, insn *i, int first, char width) {
    const char *word[OPERANDS * 2];
    int brace = first;
    while (brace < r->words && r->word[brace][0] != '{') brace++;
    if (brace == r->words) return false;
    bool pack = brace > first;
    int count = collect(r, first, word);
    i->count = count - 1;
    i->size = (width == 'd' ? 8 : 4) / i->count;
    for (int k = 0; k < count; k++) put_operand(r, i, k, word[k], (pack ? k == 0 : k == count - 1) ? width : 'w');
    i->run = lanes_pack(pack);
    return true;
}

static void read_convert(reader *r, insn *i, const name_parts *p, int first) {
    const char *word[OPERANDS * 2], *to = p->part[p->count - 2], *from = p->part[p->count - 1], *rounding = "";
    static const char *const roundings[] = {"rn", "rni", "rzi", "rmi", "rpi", "rz", "rna"};
    for (size_t k = 0; k < sizeof roundings / sizeof *roundings; k++)
        if (has_part(p, roundings[k])) rounding = roundings[k];
    int count = collect(r, first, word);
    for (int k = 0; k < count; k++) put_operand(r, i, k, word[k], strstr(k ? from : to, "64") ? 'd' : 'w');
    bool to_float = strchr(to, 'f') != NULL, cut = strcmp(rounding, "rz") == 0 && to_float;
    if (cut || has_part(p, "relu") || has_part(p, "satfinite") || (has_part(p, "sat") && strcmp(to, "f32") != 0))
        fail(r, "%s is not known", i->name);
    i->imm = rounding[0] ? rounding[1] : 'n';
    i->run = lanes_convert(to, from, rounding, has_part(p, "sat"));
}

static void read_compare(reader *r, insn *i, const name_parts *p, int first) {
    const char *word[OPERANDS * 2], *type = p->part[p->count - 1];
    char width = strstr(type, "64") ? 'd' : 'w';
    if (p->count > 4 || collect(r, first, word) != 3) fail(r, "%s with other operands", i->name);
    put_operand(r, i, 0, word[0], 'p');
    for (int k = 1; k < 3; k++) put_operand(r, i, k, word[k], width);
    i->run = lanes_compare(type, p->part[1], i);
}

// cvta: between a generic address and one of its space.
static void read_reach(reader *r, insn *i, const name_parts *p, int first) {
    const char *word[OPERANDS * 2];
    collect(r, first, word);
    i->space = space_of(p, r->f);
    for (int k = 0; k < 2; k++) put_operand(r, i, k, word[k], 'd');
    i->run = lanes_reach(!has_part(p, "to"));
}

static void read_call(reader *r, insn *i, int first) {
    const char *name = NULL;
    bool named = false;
    i->kind = CALL;
    i->result = -1;
    for (int k = first; k < r->words; k++) {
        const symbol *s;
        if (strchr("()", r->word[k][0])) continue;
        s = find_symbol(r, r->word[k]);
        if (s && s->space == SPACE_LANE_PARAM && !named) {
            i->result = (int)s->at;
        } else if (s && s->space == SPACE_LANE_PARAM) {
            if (i->arg_count == 16) fail(r, "too many arguments");
            i->args[i->arg_count++] = (int)s->at;
        } else {
            name = r->word[k];
            named = true;
        }
    }
    i->callee = name ? ptx_function(r->m, name) : NULL;
    if (!i->callee) fail(r, "the function %s is not known", name ? name : "?");
}

static void read_branch(reader *r, insn *i, int first) {
    i->kind = BRANCH;
    i->target = -1;
    i->imm = r->label_count; // its label, until all are known
    MORE(r->labels, r->label_count)->name = strdup(r->word[first]);
    r->labels[r->label_count - 1].at = -1;
}

static bool is_word(const char *word, const char *stem) {
    size_t n = strlen(stem);
    return strncmp(word, stem, n) == 0 && (word[n] == '.' || word[n] == '\0');
}

// The copy engine's operations: operands are registers, whatever brackets they stand in.
static void read_bricks(reader *r, insn *i, const lanes_row *row, int first) {
    i->run = row->run;
    for (int k = first; k < r->words; k++)
        if (!strchr("[]{}", r->word[k][0])) {
            if (!row->widths[i->count]) fail(r, "%s has too many operands", i->name);
            put_operand(r, i, i->count, r->word[k], row->widths[i->count]);
            i->count++;
        }
}

// A product of four warps: the sums in braces, then operands as of any row.
static void read_product(reader *r, insn *i, const lanes_row *row, int first) {
    int *sums = calloc(128, sizeof *sums), bytes, k = first + 1, at = 0;
    for (; k < r->words && r->word[k][0] != '}'; k++) sums[i->count++] = operand_row(r, r->word[k], 'w', &bytes);
    const char *word[7]; // two descriptions, whether to add, two signs, which are turned
    for (k++; k < r->words && at < 7; k++) word[at++] = r->word[k];
    if (at != 7 || strcmp(word[3], "1") != 0 || strcmp(word[4], "1") != 0) fail(r, "%s has other operands", i->name);
    const char *kept[5] = {word[0], word[1], word[2], word[5], word[6]};
    for (int n = 0; n < 5; n++) put_operand(r, i, n, kept[n], row->widths[n]);
    i->more = sums;
    i->run = row->run;
    i->kind = CONVERGENT;
    i->target = -1;
}

// Operations that are rows of a table.
static void read_row(reader *r, insn *i, const char *name, int first) {
    const char *word[OPERANDS * 2];
    const lanes_row *row = lanes_find(name);
    if (!row) fail(r, "the operation %s is not known", name);
    if (is_word(name, "wgmma.mma_async")) {
        read_product(r, i, row, first);
        return;
    }
    if (is_word(name, "cp.async.bulk")) {
        read_bricks(r, i, row, first);
        return;
    }
    int count = collect(r, first, word), wanted = (int)strlen(row->widths);
    i->kind = row->kind;
    i->run = row->run;
    i->target = -1;
    for (int n = 0; n < count; i->count++) {
        if (i->count == wanted) fail(r, "%s has too many operands", name);
        if (word[n][0] == '[') {
            i->space = SPACE_SHARED, i->size = is_word(name, "mbarrier") ? 8 : 16;
            n = read_address(r, i, word, n, i->count);
        } else {
            put_operand(r, i, i->count, word[n++], row->widths[i->count]);
        }
    }
    if (i->count != wanted && !is_word(name, "bar.sync")) fail(r, "%s has %d operands", name, i->count);
    bool whole = strstr(name, "mma") || strstr(name, "matrix") || strstr(name, "_group") || strstr(name, "fence");
    if (row->kind == CONVERGENT && !whole) i->target = i->op[i->count - 1];
    if (i->size) i->count = 1; // of an address
}

static void read_instruction(reader *r) {
    function *f = r->f;
    insn *i = MORE(f->code, f->count);
    int at = 0;
    *i = (insn){.guard = -1, .line = r->begins, .result = -1};
    if (r->word[0][0] == '@') {
        int bytes;
        i->guard_not = r->word[0][1] == '!';
        i->guard = operand_row(r, r->word[0] + 1 + i->guard_not, 'p', &bytes);
        at = 1;
    }
    const char *name = r->word[at++];
    name_parts p;
    cut_name(&p, name);
    i->name = strdup(name);
    if (is_word(name, "bra"))
        read_branch(r, i, at);
    else if (is_word(name, "ret"))
        i->kind = RETURN;
    else if (is_word(name, "call"))
        read_call(r, i, at);
    else if (is_word(name, "trap"))
        i->kind = TRAP;
    else if (is_word(name, "ld") || is_word(name, "st"))
        read_memory(r, i, &p, at);
    else if (is_word(name, "atom"))
        read_atom(r, i, &p, at);
    else if (is_word(name, "cp.async.cg") || is_word(name, "cp.async.ca"))
        read_copy(r, i, at);
    else if (is_word(name, "cvt"))
        read_convert(r, i, &p, at);
    else if (is_word(name, "setp"))
        read_compare(r, i, &p, at);
    else if (is_word(name, "cvta"))
        read_reach(r, i, &p, at);
    else if (!is_word(name, "mov") || !read_pack(r, i, at, strstr(name, "64") ? 'd' : 'w'))
        read_row(r, i, name, at);
}

// Functions

static void read_params(reader *r, int *at, bool result) {
    function *f = r->f;
    for (; *at < r->words && r->word[*at][0] != ')'; (*at)++) {
        int first = *at, end = first + 1;
        while (end < r->words && r->word[end][0] != ')' && strcmp(r->word[end], ".param") != 0) end++;
        int words = r->words;
        r->words = end;
        variable v = read_variable(r, first + 1);
        r->words = words;
        int64_t begin = place(f->entry ? &f->args_bytes : &f->lane_bytes, v.bytes, v.align);
        add_symbol(r, v.name, f->entry ? SPACE_PARAM : SPACE_LANE_PARAM, begin, v.bytes);
        if (result)
            f->result = (param){begin, v.bytes};
        else
            *MORE(f->params, f->param_count) = (param){begin, v.bytes};
        *at = end - 1;
    }
}

// The head of a function: [.visible] .entry|.func [(result)] name (params) [limits]. False for a declaration alone,
// whose body comes later.
static void read_head(reader *r) {
    int at = 0;
    while (strcmp(r->word[at], ".entry") != 0 && strcmp(r->word[at], ".func") != 0) at++;
    bool entry = strcmp(r->word[at++], ".entry") == 0;
    int result = -1, name = at;
    if (r->word[at][0] == '(') {
        result = at + 1;
        while (r->word[name][0] != ')') name++;
        name++;
    }
    function *f = ptx_function(r->m, r->word[name]);
    if (!f) {
        f = calloc(1, sizeof *f);
        *MORE(r->m->functions, r->m->function_count) = f;
    }
    *f = (function){.name = strdup(r->word[name]), .of = r->m, .entry = entry};
    f->idle = calloc(1, sizeof *f->idle);
    r->f = f;
    f->shared_bytes = r->module_shared;
    r->register_count = r->local_count = r->label_count = r->depth = 0;
    if (result >= 0) read_params(r, &result, true);
    at = name + 1;
    if (at < r->words && r->word[at][0] == '(') {
        at++;
        read_params(r, &at, false);
    }
    for (; at < r->words; at++)
        if (strcmp(r->word[at], ".maxntid") == 0) f->max_threads = atoi(r->word[at + 1]);
}

static void end_function(reader *r) {
    function *f = r->f;
    for (int i = 0; i < f->count; i++) {
        insn *b = &f->code[i];
        if (b->kind != BRANCH) continue;
        for (int l = 0; l < r->label_count; l++)
            if (r->labels[l].at >= 0 && strcmp(r->labels[l].name, r->labels[b->imm].name) == 0)
                b->target = r->labels[l].at;
        if (b->target < 0) fail(r, "the label %s is missing", r->labels[b->imm].name);
    }
    *MORE(f->code, f->count) = (insn){.kind = RETURN, .guard = -1, .name = "ret", .line = r->line};
    r->f = NULL;
}

static void open_scope(reader *r) {
    if (r->depth == DEPTH) fail(r, "blocks are too deep");
    r->scope[r->depth].registers = r->register_count;
    r->scope[r->depth++].locals = r->local_count;
}

static void close_scope(reader *r) {
    if (r->depth == 0) {
        end_function(r);
        return;
    }
    r->register_count = r->scope[--r->depth].registers;
    r->local_count = r->scope[r->depth].locals;
}

static void take_statement(reader *r, char end) {
    split(r);
    if (r->words == 0) return;
    const char *word = r->word[0];
    if (end == ':') {
        MORE(r->labels, r->label_count)->name = strdup(word);
        r->labels[r->label_count - 1].at = r->f->count;
    } else if (strcmp(word, ".target") == 0) {
        r->m->target = atoi(r->word[1] + strlen("sm_"));
    } else if (strcmp(word, ".reg") == 0) {
        declare_registers(r);
    } else if (word[0] != '.') {
        read_instruction(r);
    } else if (!strcmp(word, ".version") || !strcmp(word, ".address_size") || !strcmp(word, ".pragma") ||
               !strcmp(word, ".loc") || !strcmp(word, ".file")) {
        return;
    } else if (strstr(r->statement, ".entry") || strstr(r->statement, ".func")) {
        read_head(r);
        if (end != '{') r->f = NULL; // declared, not defined
    } else {
        declare_variable(r);
    }
}

module *ptx_read(const char *text, size_t length) {
    reader *r = calloc(1, sizeof *r);
    r->m = calloc(1, sizeof *r->m);
    r->at = text;
    r->end = text + strnlen(text, length);
    r->line = 1;
    for (char end; (end = read_statement(r)) != 0;) {
        if (end == '}') {
            if (r->f) close_scope(r);
        } else if (end == '{' && !r->statement[0]) {
            if (r->f) open_scope(r);
        } else {
            take_statement(r, end);
        }
    }
    module *m = r->m;
    free(r->registers);
    free(r->locals);
    free(r->labels);
    free(r);
    return m;
}

function *ptx_function(const module *m, const char *name) {
    for (int i = 0; i < m->function_count; i++)
        if (strcmp(m->functions[i]->name, name) == 0) return m->functions[i];
    return NULL;
}

symbol *ptx_symbol(const module *m, const char *name) {
    for (int i = 0; i < m->symbol_count; i++)
        if (strcmp(m->symbols[i].name, name) == 0) return &m->symbols[i];
    return NULL;
}

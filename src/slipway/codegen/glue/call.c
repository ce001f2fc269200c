/* Calls of PackedFuncs by name, through the two slots of tvm-ffi's C interface.
 *
 * Part of a library only if one of its functions calls a PackedFunc.  Compiled to call32.ll /
 * call64.ll by tools/generate_glue.py; the C generator copies it.
 */

typedef struct {
  const char *data;
  __SIZE_TYPE__ size;
} SlwName;

extern int (*__TVMFFIFunctionGetGlobal)(const SlwName *name, void **out);
extern int (*__TVMFFIFunctionCall)(void *function, void *args, int count, void *result);

/* Call the function `name`, kept in *cache after the first call.  0: done, -1: it raised an error,
 * -2: calls are not possible here, or there is no such function. */
int slw_call_packed(const char *name, void **cache, void *args, int count, void *result);
int slw_call_packed(const char *name, void **cache, void *args, int count, void *result) {
  if (__TVMFFIFunctionGetGlobal == 0 || __TVMFFIFunctionCall == 0) {
    return -2;
  }
  if (*cache == 0) {
    SlwName text;
    void *found = 0;
    text.data = name;
    text.size = 0;
    while (name[text.size] != '\0') {
      ++text.size;
    }
    if (__TVMFFIFunctionGetGlobal(&text, &found) != 0 || found == 0) {
      return -2;
    }
    *cache = found;
  }
  return __TVMFFIFunctionCall(*cache, args, count, result) == 0 ? 0 : -1;
}

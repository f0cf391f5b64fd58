# Writes files as a C source with the table `assets` (src/watch/web/assets.h):
#   cmake -DOUT=assets.c -DWHOLE=1 "-DFILES=/a.html;/b.js" -P embed.cmake
# WHOLE: 1 where all parts of the page are there.
set(text "// Made by tools/embed.cmake.\n#include \"watch/web/assets.h\"\n\n")
set(table "")
set(n 0)
foreach(path ${FILES})
  get_filename_component(name "${path}" NAME)
  file(READ "${path}" hex HEX)
  file(SHA256 "${path}" sum)
  string(SUBSTRING ${sum} 0 16 tag)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND text "static const unsigned char file_${n}[] = {${bytes}};\n")
  string(APPEND table "    {\"${name}\", \"\\\"${tag}\\\"\", file_${n}, sizeof file_${n}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE "${OUT}.new" "${text}\nconst asset assets[] = {\n${table}    {0, 0, 0, 0}};\nconst int assets_whole = ${WHOLE};\n")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different "${OUT}.new" "${OUT}")
file(REMOVE "${OUT}.new")

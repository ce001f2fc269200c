"""The numbers of SPIR-V: instructions, and what they are given by name.

From the SPIR-V Specification, version 1.3, and GLSL.std.450, of the Khronos Group.
"""

from __future__ import annotations


class Id(int):
    """The number of a result."""


class Word(int):
    """A number that has a name in SPIR-V's text."""

    name: str

    def __new__(cls, name: str, number: int) -> Word:
        """Return the word."""
        word = super().__new__(cls, number)
        word.name = name
        return word


def _words(text: str) -> dict[str, Word]:
    found = (pair.split("=") for pair in text.split())
    return {name: Word(name, int(number)) for name, number in found}


OPCODES = _words("""
Extension=10 ExtInstImport=11 ExtInst=12 MemoryModel=14 EntryPoint=15 ExecutionMode=16
Capability=17 TypeVoid=19 TypeBool=20 TypeInt=21 TypeFloat=22 TypeVector=23 TypeArray=28
TypeRuntimeArray=29 TypeStruct=30 TypePointer=32 TypeFunction=33 ConstantTrue=41 ConstantFalse=42
Constant=43 ConstantNull=46 ConstantComposite=44 Function=54
FunctionEnd=56 Variable=59 Load=61 Store=62 AccessChain=65 Decorate=71 MemberDecorate=72
CompositeExtract=81 ConvertFToU=109 ConvertFToS=110 ConvertSToF=111 ConvertUToF=112 UConvert=113
SConvert=114 FConvert=115 Bitcast=124 FNegate=127 IAdd=128 FAdd=129 ISub=130 FSub=131 IMul=132
FMul=133 UDiv=134 SDiv=135 FDiv=136 IsNan=156 LogicalNotEqual=165 LogicalOr=166 LogicalAnd=167
LogicalNot=168 Select=169 IEqual=170 INotEqual=171 UGreaterThan=172 SGreaterThan=173
UGreaterThanEqual=174 SGreaterThanEqual=175 ULessThan=176 SLessThan=177 ULessThanEqual=178
SLessThanEqual=179 FOrdEqual=180 FUnordNotEqual=183 FOrdLessThan=184 FOrdGreaterThan=186
FOrdLessThanEqual=188 FOrdGreaterThanEqual=190 ShiftRightLogical=194 ShiftRightArithmetic=195
ShiftLeftLogical=196 BitwiseOr=197 BitwiseXor=198 BitwiseAnd=199 BitCount=205 ControlBarrier=224
Phi=245 LoopMerge=246 SelectionMerge=247 Label=248 Branch=249 BranchConditional=250 Return=253
ModuleProcessed=330 GroupNonUniformShuffle=345 TypeCooperativeMatrixKHR=4456
CooperativeMatrixLoadKHR=4457 CooperativeMatrixStoreKHR=4458 CooperativeMatrixMulAddKHR=4459
""")
# Whose results depend on their operands alone.
PURE = frozenset(
    name for name, number in OPCODES.items()
    if number <= OPCODES["BitCount"] and number >= OPCODES["CompositeExtract"]
) | {"ExtInst", "AccessChain"}  # fmt: skip
CAPABILITIES = _words("""
Shader=1 Float16=9 Float64=10 Int64=11 Int16=22 Int8=39 GroupNonUniform=61 GroupNonUniformShuffle=65
StorageBuffer16BitAccess=4433
StorageBuffer8BitAccess=4448 VulkanMemoryModel=5345 CooperativeMatrixKHR=6022
""")
STORAGE = _words("Input=1 Workgroup=4 Function=7 PushConstant=9 StorageBuffer=12")
DECORATIONS = _words("""
Block=2 ArrayStride=6 BuiltIn=11 Restrict=19 Aliased=20 Coherent=23 NonWritable=24 Binding=33
DescriptorSet=34 Offset=35 NoContraction=42
""")
BUILTINS = _words("""
WorkgroupId=26 LocalInvocationId=27 SubgroupId=40 SubgroupLocalInvocationId=41
""")
GLSL = _words("RoundEven=2 Trunc=3 FAbs=4 Floor=8 Ceil=9 Sqrt=31 Fma=50 FindUMsb=75")
LOGICAL = Word("Logical", 0)
GLSL450 = Word("GLSL450", 1)
VULKAN_MODEL = Word("Vulkan", 3)
GL_COMPUTE = Word("GLCompute", 5)
LOCAL_SIZE = Word("LocalSize", 17)
NONE = Word("None", 0)
WORKGROUP_SCOPE, SUBGROUP_SCOPE = 2, 3
# AcquireRelease, of memory that buffers hold and of memory that a block shares: without the last
# two a barrier orders nothing, and the results are wrong without a word.
BARRIER_SEMANTICS = 0x8 | 0x40 | 0x100
# Under Vulkan's memory model a barrier says that it hands over too, and an access that it is handed
# over: without, it is the thread's own matter.
HANDS_OVER = 0x2000 | 0x4000
HANDED_OVER = Word("NonPrivatePointer", 0x20)
MAGIC, VERSION, GENERATOR = 0x07230203, 0x00010300, 0

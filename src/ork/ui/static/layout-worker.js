import{a as e}from"./shared-8.js";addEventListener("message",s=>{let{id:t,...a}=s.data;postMessage({id:t,layout:e(a)})});
